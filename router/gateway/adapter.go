package gateway

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"adpdeck/router/engine"
	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

// adapters are the LoRA adapters that are known from the engines' lists of models.
type adapters []engine.Adapter

// named returns the adapter of that name: one at least, where a kind is given, that
// such an engine serves.
func (all adapters) named(name string, kind model.EngineKind) bool {
	return name != "" && slices.ContainsFunc(all, func(a engine.Adapter) bool { return a.Name == name && (kind == "" || a.Kind == kind) })
}

// adapter finds out which LoRA adapter a request is for, "" for the base model: lora
// is its name as the engine's events have it, served the name by which the workers
// that have it are found.
//
//	vllm, sglang  model: ADAPTER, as the engine lists it with its parent
//	sglang        model: BASE:ADAPTER, or lora_path beside the base model's name
//	trtllm        lora_request, whose events have its number
//
// Dynamo's lists do not say what an adapter is: one is a model like others there.
func (g *Gateway) adapter(d *body.Doc, name string) (served, lora string) {
	all, list := g.view.known()
	serving := func(name string, kind model.EngineKind) bool {
		return slices.ContainsFunc(list, func(w model.EngineSpec) bool { return w.Kind == kind && serves(&w, name) })
	}
	if all.named(name, "") {
		return name, name
	}
	base, path, both := strings.Cut(name, ":")
	switch {
	case both && path != "" && !lists(list, name) && serving(base, model.EngineSGLang):
	case serving(name, model.EngineSGLang):
		base, path = name, strings.Clone(firstText(d.Get("lora_path")))
	default:
		path = ""
	}
	switch {
	case path != "" && all.named(path, model.EngineSGLang):
		return path, path
	case path != "":
		return base, path
	case serving(name, model.EngineTRTLLM):
		return name, trtAdapter(d.Get("lora_request"))
	}
	return name, ""
}

// lists reports that a worker lists a model by name.
func lists(list []model.EngineSpec, name string) bool {
	return slices.ContainsFunc(list, func(w model.EngineSpec) bool { return slices.Contains(w.Models, name) })
}

// firstText is a text, or the first of a list of them: one for each prompt.
func firstText(v gjson.Result) string {
	if v.IsArray() {
		v = v.Get("0")
	}
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}

// trtAdapter is an adapter as TensorRT-LLM's events name it: by its number.
func trtAdapter(v gjson.Result) string {
	if !v.IsObject() {
		return ""
	}
	if n := v.Get("lora_int_id"); n.Type == gjson.Number && n.Num > 0 {
		if id, err := strconv.ParseUint(n.Raw, 10, 63); err == nil {
			return "#" + strconv.FormatUint(id, 10)
		}
	}
	return strings.Clone(firstText(v.Get("lora_name")))
}

// placed is the same for a placement, whose caller names model and adapter apart or
// the adapter as the model.
func (g *Gateway) placed(name, adapter string) (served, lora string) {
	all, _ := g.view.known()
	switch {
	case adapter == "" && all.named(name, ""):
		return name, name
	case adapter != "" && all.named(adapter, ""):
		return adapter, adapter
	}
	return name, adapter
}
