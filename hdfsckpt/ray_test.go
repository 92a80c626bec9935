package hdfsckpt_test

import (
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/formats"
)

// TestRayCheckpoints: a directory of Ray Train is complete once the list beside it names it,
// whatever it is called and whatever is in it.
func TestRayCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	// As Ray 2.60 writes it, but for what is not read.
	put(t, s, "run/checkpoint_manager_snapshot.json", []byte(`{"ray_version":"2.60.0","checkpoint_results":[
		{"version":0,"checkpoint_dir_name":"checkpoint_2026-11-25_15-38-52.901110","metrics":{"step":20,"loss":0.5}},
		{"version":0,"checkpoint_dir_name":"mine","metrics":{"loss":0.5}},
		{"version":0,"checkpoint_dir_name":"../other","metrics":{}}],
		"latest_checkpoint_result":{"version":0,"checkpoint_dir_name":"mine","metrics":{}}}`))
	put(t, s, "run/checkpoint_2026-11-25_15-38-52.901110/model.pt", []byte("x"))
	put(t, s, "run/checkpoint_2026-11-25_15-38-52.901110/40/data.bin", []byte("x"))
	put(t, s, "run/mine/state.npz", []byte("x"))
	put(t, s, "run/checkpoint_2026-11-25_15-39-52.901110/state.npz", []byte("x"))
	put(t, s, "run/logs/state.npz", []byte("x"))
	put(t, s, "begun/checkpoint_2026-11-25_15-39-52.901110/state.npz", []byte("x"))
	put(t, s, "broken/checkpoint_manager_snapshot.json", []byte(`{"checkpoint_results":[{"checkpoint_dir_name":"checkpoint_2026`))
	put(t, s, "broken/checkpoint_2026-11-25_15-39-52.901110/state.npz", []byte("x"))
	want := `begun/checkpoint_2026-11-25_15-39-52.901110 ray 1 unchecked (there is no checkpoint_manager_snapshot.json beside it yet)
broken/checkpoint_2026-11-25_15-39-52.901110 ray 1 unchecked (checkpoint_manager_snapshot.json beside it is not readable: unexpected end of JSON input)
run/checkpoint_2026-11-25_15-39-52.901110 ray 1 torn (checkpoint_manager_snapshot.json beside it does not list it: its save has not ended)
run/mine ray 1 complete
run/checkpoint_2026-11-25_15-38-52.901110 ray 2 complete
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("found\n%s, want\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "run/checkpoint_2026-11-25_15-39-52.901110" {
		t.Errorf("moved aside: %s, %v", report, err)
	}
}

// TestOneThatRayDroppedLastIsNoBrokenSave: Ray rewrites its list before it removes what that no longer
// names. A run that is lost in between has the older checkpoint still, whole, and starts beside it.
func TestOneThatRayDroppedLastIsNoBrokenSave(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	c := contracts(t)[string(formats.Ray)]
	older, newest, broken := c.at("10"), c.at("20"), c.at("30")
	c.save(t, s, putFile, "10", "20")
	seal(t, s, older, newest)
	c.note(t, s, "20")
	put(t, s, broken+"/state.npz", []byte("x"))
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != broken {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	if got, want := states(list(t, s)), older+" sealed; "+newest+" sealed"; got != want {
		t.Errorf("then there are %s, want %s", got, want)
	}
	put(t, s, older+"/state.npz", []byte("x"))
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || len(report.Aside) != 1 || report.Aside[0].Name != older {
		t.Errorf("once it is not what was sealed, moved aside: %s, %v", report, err)
	}
}
