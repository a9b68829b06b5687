package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adpdeck/tui/command"
)

func TestTheConsoleFileIsTheUsersOrTheOneNamed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	s := &screenFlags{}
	if k, err := s.keys(); err != nil || k.Table != nil || k.Clash != "" {
		t.Errorf("without a file: %+v, %v", k, err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "adpdeck", "console.yaml"), "bind:\n  freeze: f9\n")
	if k, err := s.keys(); err != nil || k.Table.KeyOf(command.Freeze) != "F9" {
		t.Errorf("the user's: %+v, %v", k, err)
	}
	s.console = filepath.Join(dir, "other.yaml")
	if _, err := s.keys(); err == nil || !strings.Contains(err.Error(), "other.yaml") {
		t.Errorf("named and not there: %v", err)
	}
	write(s.console, "bind:\n  freeze: f8\n")
	if k, err := s.keys(); err != nil || k.Table.KeyOf(command.Freeze) != "F8" {
		t.Errorf("the one named: %+v, %v", k, err)
	}
	write(s.console, "bind:\n  copy: z\n")
	if k, err := s.keys(); err != nil || !strings.HasPrefix(k.Clash, "other.yaml:2: key z starts freeze and copy") {
		t.Errorf("a clash: %+v, %v", k, err)
	}
	write(s.console, "bind:\n  drain: ^k\n")
	if _, err := s.keys(); err == nil || !strings.Contains(err.Error(), "other.yaml:2:10: drain changes something") || !strings.Contains(err.Error(), "default keys") {
		t.Errorf("against the rules: %v", err)
	}
}
