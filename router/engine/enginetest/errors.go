package enginetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"adpdeck/router/model"
)

// apiError is an answer that is an error.
type apiError struct {
	status    int
	kind, msg string
	param     string
}

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "BadRequestError", msg: fmt.Sprintf(format, args...), param: param}
}

// fail writes an error in a kind's own form: vLLM wraps it in "error", SGLang and
// TensorRT-LLM write it flat, Dynamo in three fields.
func (e *Engine) fail(w http.ResponseWriter, err *apiError) {
	var param any
	if err.param != "" {
		param = err.param
	}
	flat := map[string]any{"message": err.msg, "type": err.kind, "code": err.status}
	switch e.cfg.Kind {
	case model.EngineVLLM:
		flat["param"] = param
		writeJSON(w, err.status, map[string]any{"error": flat})
	case model.EngineDynamo:
		flat["type"] = http.StatusText(err.status)
		writeJSON(w, err.status, flat)
	default:
		flat["param"], flat["object"] = param, "error"
		writeJSON(w, err.status, flat)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of values that the package made itself
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

func writeText(w http.ResponseWriter, status int, contentType, s string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(s)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s))
}
