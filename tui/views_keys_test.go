package tui

import (
	"strings"
	"testing"

	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

func TestNextMatchGoesRoundTheFilteredRows(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	c.press("2", "n")
	c.want(-2, "n is off: no filter: / sets one")
	c.press("/")
	c.typeText("rank:w0/3")
	c.press("enter")
	first := c.views2().CopyText(&c.frame)
	c.press("n")
	second := c.views2().CopyText(&c.frame)
	c.press("N", "N")
	last := c.views2().CopyText(&c.frame)
	c.press("n")
	if second == first || last == first || last == second || c.views2().CopyText(&c.frame) != first {
		t.Errorf("first %q, second %q, last %q", first, second, last)
	}
}

func TestNextOddThingSaysWhatIsOdd(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	c.press("1", "e")
	c.want(-2, "w0/3 holds every step of w0")
	c.press("e")
	c.want(-2, "drains")
	c.press("2", "e")
	c.want(-2, "lost: ran on ")
	c = screen(t, &model.State{Ranks: []model.Rank{}, At: fixture.Now()}, 80, 24)
	c.press("e")
	c.want(-2, "nothing odd")
}

func TestTabGoesToTheHistoryAndBack(t *testing.T) {
	c := screen(t, fixture.Normal(), 120, 40)
	c.press("5", "j", "tab")
	c.want(-2, "takes this change back")
	c.press("tab")
	if !strings.Contains(c.View(), "▸ match threshold") {
		t.Errorf("not back on the knob:\n%s", c.View())
	}
}

func TestTheKeysOfEachViewFitOn80x24(t *testing.T) {
	for _, view := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		c := screen(t, fixture.Fleet(), 80, 24)
		c.press(view, "?")
		if strings.Contains(c.View(), "more: ↓") {
			t.Errorf("view %s:\n%s", view, c.View())
		}
	}
}

func TestAFrozenScreenStandsStill(t *testing.T) {
	c := screen(t, fixture.Normal(), 120, 40)
	c.live(5)
	c.press("z")
	before := strings.Split(c.View(), "\n")
	c.live(7)
	for i, line := range strings.Split(c.View(), "\n") {
		if i != 0 && i != 38 && line != before[i] { // the header and the status tell how long ago
			t.Errorf("line %d was\n%s\nis\n%s", i, before[i], line)
		}
	}
}

func TestWhileTypingTheHintsAreThoseOfTheText(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	for _, keys := range [][]string{{"1", "/"}, {"1", "W"}, {"2", "/"}, {"3", "/"}, {"4", "/"}, {"5", "e"}, {"6", "/"}, {"7", "/"}} {
		c.press(keys...)
		c.want(-1, "⏎ keep  esc back  ^u clear")
		c.press("esc")
		c.want(-1, ": command")
	}
}

func TestWhatIsWrongWithAFilterIsReadable(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	c.press("2", "/")
	c.typeText("colour:red")
	c.want(2, "no column colour: columns are conversation tenant model pin")
}
