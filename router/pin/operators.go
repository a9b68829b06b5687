package pin

import (
	"errors"

	"adpdeck/router/model"
)

// ErrFull is returned by Operators.Set when model.MaxOperatorPins stand.
var ErrFull = errors.New("operator pins are full")

// Pin is an operator's pin. It stands above every binding, wish and policy.
// The zero Pin, without a note, is no pin.
type Pin struct {
	Target model.Target
	Note   *Note
}

// Operators holds the operators' pins, at most model.MaxOperatorPins. Nothing
// but an operator removes one.
type Operators struct {
	pins     map[model.ConvKey]Pin
	onChange func(key model.ConvKey, before, after Pin)
}

// NewOperators returns an empty set. onChange, if not nil, is called after
// every change.
func NewOperators(onChange func(key model.ConvKey, before, after Pin)) *Operators {
	if onChange == nil {
		onChange = func(model.ConvKey, Pin, Pin) {}
	}
	return &Operators{pins: map[model.ConvKey]Pin{}, onChange: onChange}
}

// Get returns the pin of key.
func (o *Operators) Get(key model.ConvKey) (Pin, bool) {
	if len(o.pins) == 0 {
		return Pin{}, false
	}
	p, ok := o.pins[key]
	return p, ok
}

// Set pins key, or moves its pin. A pin without a note removes. It returns
// ErrFull, and changes nothing, when the bound is reached and key has no pin.
func (o *Operators) Set(key model.ConvKey, p Pin) error {
	if p.Note == nil {
		o.Remove(key)
		return nil
	}
	before, had := o.pins[key]
	if !had && len(o.pins) >= model.MaxOperatorPins {
		return ErrFull
	}
	o.pins[key] = p
	o.onChange(key, before, p)
	return nil
}

// Remove takes the pin of key away and reports whether there was one.
func (o *Operators) Remove(key model.ConvKey) bool {
	before, had := o.pins[key]
	if had {
		delete(o.pins, key)
		o.onChange(key, before, Pin{})
	}
	return had
}

// Each calls f for every pin, in no order; f must not change them.
func (o *Operators) Each(f func(key model.ConvKey, p Pin)) {
	for key, p := range o.pins {
		f(key, p)
	}
}

// Len counts the pins.
func (o *Operators) Len() int { return len(o.pins) }
