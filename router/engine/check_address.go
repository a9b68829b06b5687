package engine

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"adpdeck/router/engine/zmtp"
)

// badURL says what is wrong with an engine's base address, empty for nothing.
func badURL(raw string) (cause, next string) {
	const want = "use http://HOST:PORT, with the path only where a proxy adds one"
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "the address cannot be read", want
	case u.User != nil:
		return "the address holds a password", "name the variable of its key under api_key_env instead"
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		return "the address " + strconv.Quote(raw) + " is not of the web", want
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "the address " + strconv.Quote(raw) + " goes on after its path", want
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return "the address " + strconv.Quote(raw) + " ends in /v1", "leave that off: requests bring their own path"
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return "the address " + strconv.Quote(raw) + " has no port from 1 to 65535", want
		}
	}
	return "", ""
}

func badMetricsURL(raw string) (cause, next string) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "it is not of the web", "use http://HOST:PORT/metrics"
	}
	return "", ""
}

func badNATS(raw string) (cause, next string) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" {
		return "the address " + strconv.Quote(shown(raw)) + " is no nats server", "use nats://HOST:4222"
	}
	return "", ""
}

// shown is an address without the name and password that it may hold.
func shown(raw string) string {
	if at := strings.LastIndexByte(raw, '@'); at >= 0 {
		scheme, _, _ := strings.Cut(raw, "//")
		return scheme + "//" + raw[at+1:]
	}
	return raw
}

// splitEndpoint reads tcp://HOST:PORT of a publisher that is dialed.
func splitEndpoint(raw string) (host string, port int, cause, next string) {
	const want = "use tcp://HOST:PORT"
	rest, ok := strings.CutPrefix(raw, "tcp://")
	if !ok {
		return "", 0, "it is not tcp", want
	}
	host, p, err := net.SplitHostPort(rest)
	if err != nil || host == "" || strings.ContainsAny(host, "/?# ") {
		return "", 0, "it has no host and port", want
	}
	if host == "*" || host == "0.0.0.0" || host == "::" {
		return "", 0, host + " is where the engine listens, not where it is", "name the engine's host"
	}
	if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
		return "", 0, "its port is not from 1 to 65535", want
	}
	return host, port, "", ""
}

// splitBind reads tcp://ADDRESS:PORT where this router listens.
func splitBind(raw string) (host string, port int, cause, next string) {
	const want = "use tcp://*:PORT, or one of this machine's addresses for *"
	end, err := zmtp.ParseBind(raw)
	if err != nil || end.Network != "tcp" {
		return "", 0, "it is no tcp address to listen at", want
	}
	host, p, _ := net.SplitHostPort(end.Address)
	if port, err = strconv.Atoi(p); err != nil || port == 0 {
		return "", 0, "its port is not from 1 to 65535", want
	}
	return host, port, "", ""
}

// bindAddress is a place to listen at, in one form.
func bindAddress(host string, port int) string {
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "*"
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// sameAddress compares base addresses as a client would dial them.
func sameAddress(a, b string) bool { return addressKey(a) == addressKey(b) }

// addressKey is a base address in one form: host in small letters, the port
// written out, no slash at the end.
func addressKey(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port) + strings.TrimRight(u.Path, "/")
}
