package event

import "bytes"

// tierOf reads a storage medium. No medium is the device.
func tierOf(medium []byte) (Tier, bool) {
	var buf [16]byte
	if len(medium) > len(buf) {
		return Device, false
	}
	switch string(upper(buf[:0], medium)) {
	case "", "GPU", "DEVICE":
		return Device, true
	case "CPU", "CPU_PINNED", "CPU_TIER1", "HOST", "HOST_PINNED":
		return Host, true
	case "CPU_TIER2", "DISK", "NVME", "STORAGE":
		return Disk, true
	case "EXTERNAL", "NETWORK", "REMOTE", "SHARED":
		return External, true
	}
	return Device, false
}

func upper(to, s []byte) []byte {
	for _, c := range s {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// levelOf is the tier of TensorRT-LLM's cache level: 0 device, 1 host, beyond
// that disk.
func levelOf(level uint64) Tier {
	return Tier(min(level, uint64(Disk)))
}

// specOf reads an attention kind as vLLM names them.
func specOf(kind []byte) Spec {
	switch string(kind) {
	case "":
		return SpecUnsaid
	case "full_attention", "mla_attention", "sink_full_attention", "full", "mla", "sink_full":
		return SpecMain
	case "sliding_window", "sliding_window_mla", "chunked_local_attention", "mamba", "cross_attention",
		"encoder_only_attention", "linear_attention", "swa":
		return SpecOther
	}
	return SpecUnknown
}

// isLocality tells a locality word from an attention kind.
func isLocality(word []byte) bool {
	return bytes.EqualFold(word, []byte("local")) || bytes.EqualFold(word, []byte("remote"))
}
