package router

import (
	"fmt"
	"strconv"

	"adpdeck/router/model"
)

// acts says what the objects of a command were and are, for its event: the
// values alone for one, with their names for several, the first six.
func acts(changes []change) (before, after string) {
	if len(changes) == 1 {
		c := &changes[0]
		return c.object.text(&c.before), c.object.text(&c.after)
	}
	var old, now []string
	for i := range changes {
		c := &changes[i]
		if len(old) <= 6 { // list cuts the seventh off and counts the rest
			old = append(old, c.object.name()+" "+c.object.text(&c.before))
			now = append(now, c.object.name()+" "+c.object.text(&c.after))
			continue
		}
		old, now = append(old, ""), append(now, "")
	}
	return list(old), list(now)
}

// name is the object in words.
func (o *object) name() string {
	switch o.kind {
	case fieldObject:
		return o.field
	case weightObject:
		return o.target.String() + " weight"
	case availObject:
		return o.target.String()
	}
	return o.conv.ID
}

// text is a value of the object in words.
func (o *object) text(v *value) string {
	switch o.kind {
	case fieldObject:
		return model.FieldText(v.settings, o.field, model.Target{})
	case weightObject:
		return strconv.FormatFloat(v.weight, 'g', -1, 64)
	case availObject:
		if v.drain {
			return string(model.Draining)
		}
		return string(model.Ready)
	case pinObject:
		if v.pin.Note == nil {
			return "no operator pin"
		}
		return "operator pin " + v.pin.Target.String()
	case bindingObject:
		if v.binding.Source == model.PinNone {
			return "not bound"
		}
		return fmt.Sprintf("bound to %s (%s)", v.binding.Target, v.binding.Source)
	}
	return ""
}
