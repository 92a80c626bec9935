package faults

import (
	"os"
	"strings"
	"testing"
)

// TestNothingToLose: a run that would lose nothing is no success.
func TestNothingToLose(t *testing.T) {
	if report, err := Run(t.Context(), Options{Home: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "nothing is to be lost") {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestProgramsAreFound: where the programs are not given, they are this module's, and what
// is not there is missed before anything is started.
func TestProgramsAreFound(t *testing.T) {
	o := Options{Submit: os.Args[0]}
	if err := o.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(o.Script); err != nil || !strings.Contains(string(text), "MonitoredTrainingSession") {
		t.Errorf("the program that trains is %q: %v", o.Script, err)
	}
	for _, o := range []Options{{Submit: "no-such"}, {Submit: os.Args[0], Script: "no-such"}, {Submit: os.Args[0], Examples: "no-such"}} {
		if err := o.find(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
