package hdfsckpt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// putDeepSpeed puts the files that two ranks with ZeRO write, by the names that DeepSpeed
// gives them, but for those left out.
func putDeepSpeed(t *testing.T, s store.Store, dir string, without ...string) {
	t.Helper()
	for _, name := range []string{"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt", "zero_pp_rank_1_mp_rank_00_optim_states.pt"} {
		if !slices.Contains(without, name) {
			put(t, s, dir+"/"+name, torchFixture(t, "alone.pt"))
		}
	}
}

func readLatest(t *testing.T, s store.Store, dir string) string {
	t.Helper()
	text, err := store.ReadFile(t.Context(), s, dir+"/latest")
	must(t, err)
	return string(text)
}

func TestDeepSpeedCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "alone.pt")
	putDeepSpeed(t, s, "run/global_step10")
	putDeepSpeed(t, s, "run/global_step20", "zero_pp_rank_0_mp_rank_00_optim_states.pt")
	putDeepSpeed(t, s, "run/global_step30", "mp_rank_00_model_states.pt")
	putDeepSpeed(t, s, "run/global_step40", "zero_pp_rank_1_mp_rank_00_optim_states.pt") // of fewer ranks, or broken off
	putDeepSpeed(t, s, "run/global_step50")
	put(t, s, "run/global_step50/zero_pp_rank_1_mp_rank_00_optim_states.pt", whole[:len(whole)-9])
	putDeepSpeed(t, s, "run/global_step60")
	put(t, s, "run/global_step60/mp_rank_00_model_states.pt", torchFixture(t, "legacy.pt"))
	putDeepSpeed(t, s, "run/global_step70")
	putDeepSpeed(t, s, "run/global_step80")
	put(t, s, "run/latest", []byte("global_step70"))
	put(t, s, "run/zero_to_fp32.py", nil)
	putDeepSpeed(t, s, "lost/global_step11")
	putDeepSpeed(t, s, "own/global_step12")
	put(t, s, "own/latest", []byte("the newest results"))
	put(t, s, "mine/global_step13/model.pt", whole) // not DeepSpeed's
	put(t, s, "mine/global_step13/optimizer.pt", whole)
	putDeepSpeed(t, s, "checkpoint-14/global_step14") // of Trainer, or the program's own
	put(t, s, "checkpoint-14/latest", []byte("global_step14"))
	const unnamed = "unchecked (the file latest beside it names neither it nor a later one that is there: its save may not have ended)"
	const unknown = "unchecked (nothing in it shows whether all of its files are there; the spec can say which is written last: format=plain,marker=FILE)"
	want := `run/global_step10 deepspeed 3 complete
lost/global_step11 deepspeed 3 ` + unnamed + `
own/global_step12 deepspeed 3 ` + unnamed + `
mine/global_step13 directory 2 ` + unknown + `
checkpoint-14/global_step14 directory 3 ` + unknown + `
run/global_step20 deepspeed 2 torn (zero_pp_rank_0_mp_rank_00_optim_states.pt is missing)
run/global_step30 deepspeed 2 torn (mp_rank_00_model_states.pt is missing)
run/global_step40 deepspeed 2 unchecked (it has no zero_pp_rank_1_mp_rank_00_optim_states.pt, which global_step70 has: its save may not have ended)
run/global_step50 deepspeed 3 torn (zero_pp_rank_1_mp_rank_00_optim_states.pt: not a whole file of torch.save: its directory, at the end: zip: not a valid zip file)
run/global_step60 deepspeed 3 unchecked (nothing shows whether mp_rank_00_model_states.pt is whole)
run/global_step70 deepspeed 3 complete current
run/global_step80 deepspeed 3 ` + unnamed + `
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Nothing is moved, and no file of the program's is taken for the pointer.
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || report.String() != "" {
		t.Errorf("a start says %s, %v", report, err)
	}
	must(t, s.Chtimes(t.Context(), "run/global_step70/mp_rank_00_model_states.pt", old.Add(time.Minute), old.Add(time.Minute)))
	for _, c := range list(t, s) {
		if c.Name == "run/global_step70" && c.State != format.Unchecked {
			t.Errorf("written to after latest, it is %s", c.State)
		}
	}
}

// TestDeepSpeedPointer: a rollback points latest at an older checkpoint. Otherwise it is the
// program's own, whatever it names.
func TestDeepSpeedPointer(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putDeepSpeed(t, s, "run/global_step10")
		putDeepSpeed(t, s, "run/global_step20")
		put(t, s, "run/latest", []byte("global_step20"))
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
			t.Fatalf("nothing is amiss: %s, %v", report, err)
		}
		plan, err := hdfsckpt.PlanRollback(ctx, s, "", 10)
		must(t, err)
		must(t, plan.Execute(ctx, s, "alice"))
		if got := readLatest(t, s, "run"); got != "global_step10" || len(plan.Newer) != 1 || len(movedAside(t, s)) > 0 {
			t.Errorf("rolled back, latest says %q, newer are %+v", got, plan.Newer)
		}
		put(t, s, "run/latest", []byte("global_step20"))
		must(t, s.Remove(ctx, "run/global_step20/zero_pp_rank_0_mp_rank_00_optim_states.pt"))
		report, err := hdfsckpt.Repair(ctx, s, 0)
		want := "run/latest names global_step20, which is not whole: zero_pp_rank_0_mp_rank_00_optim_states.pt is missing. A program that goes on from there fails. " +
			"run/global_step10 is complete: to go back to it, end the job, and: yarn-submit ckpt rollback " + s.URI() + " 10"
		if got := readLatest(t, s, "run"); err != nil || got != "global_step20" || report.String() != want {
			t.Errorf("nobody asked, and latest says %q: %s, %v", got, report, err)
		}
		plan, err = hdfsckpt.PlanRollback(ctx, s, "", 10)
		must(t, err)
		must(t, plan.Execute(ctx, s, "alice"))
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
			t.Errorf("after that: %s, %v", report, err)
		}
		put(t, s, "alone/latest", []byte("global_step5"))
		putDeepSpeed(t, s, "alone/global_step5", "mp_rank_00_model_states.pt")
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || !strings.HasSuffix(report.String(), "No other one is complete: to begin at the beginning, remove alone/latest") {
			t.Errorf("where there is no other: %s, %v", report, err)
		}
	})
}

// TestDeepSpeedRollsForward: what was sealed is complete, whatever latest names by now.
func TestDeepSpeedRollsForward(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putDeepSpeed(t, s, "run/global_step10")
	putDeepSpeed(t, s, "run/global_step20")
	put(t, s, "run/latest", []byte("global_step20"))
	seal(t, s, "run/global_step10", "run/global_step20")
	for _, step := range []int64{10, 20} {
		plan, err := hdfsckpt.PlanRollback(t.Context(), s, "", step)
		must(t, err)
		must(t, plan.Execute(t.Context(), s, "alice"))
		if got := readLatest(t, s, "run"); got != fmt.Sprintf("global_step%d", step) {
			t.Errorf("latest says %q", got)
		}
	}
	put(t, s, "run/latest", []byte("global_step10"))
	put(t, s, "run/global_step20/mp_rank_00_model_states.pt", torchFixture(t, "train-40.pt"))
	if got := states(list(t, s)); got != "run/global_step10 sealed current; run/global_step20 unchecked" {
		t.Errorf("after it was written to: %s", got)
	}
}

// TestDeepSpeedIsRemoved: what the program removes is retained where it would be the last
// but one, and comes back if latest names it.
func TestDeepSpeedIsRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putDeepSpeed(t, s, "run/global_step10")
		putDeepSpeed(t, s, "run/global_step20")
		put(t, s, "run/latest", []byte("global_step20"))
		seal(t, s, "run/global_step10")
		for _, f := range filesBelow(t, s, "run/global_step10") {
			unlink(t, s, f)
		}
		removeDirs(t, s, "run/global_step10")
		if retain.Concerns("run/latest") {
			t.Error("latest is taken for a part of a checkpoint")
		}
		if got := states(list(t, s)); got != "run/global_step20 complete current" {
			t.Errorf("left are %s", got)
		}
		kept := listRetained(t, s)
		if len(kept) != 1 || kept[0].Former != "run/global_step10" || kept[0].State != format.Sealed || kept[0].Step != 10 || len(kept[0].Files) != 3 {
			t.Fatalf("retained are %+v", kept)
		}
		// Nobody names it, so it stays where it is.
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
			t.Errorf("a start says %s, %v", report, err)
		}
		// The program removes the last one too, though latest names it.
		for _, f := range filesBelow(t, s, "run/global_step20") {
			unlink(t, s, f)
		}
		removeDirs(t, s, "run/global_step20")
		report, err := hdfsckpt.Repair(ctx, s, 0)
		if got := states(list(t, s)); err != nil || got != "run/global_step20 complete current" || !slices.Equal(report.Named, []string{"run/global_step20"}) {
			t.Errorf("what latest names: %s; %s, %v", got, report, err)
		}
	})
}

// TestDeepSpeedIsRolledBackToWhatWasRemoved, and latest names it then.
func TestDeepSpeedIsRolledBackToWhatWasRemoved(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putDeepSpeed(t, s, "run/global_step10")
	putDeepSpeed(t, s, "run/global_step20")
	put(t, s, "run/latest", []byte("global_step20"))
	remove(t, s, "run/global_step10")
	remove(t, s, "run/global_step20") // it may not be whole by what is beside it any longer
	put(t, s, "run/latest", []byte("global_step30"))
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || !strings.Contains(report.String(), "run/global_step20 is complete: to go back to it") {
		t.Errorf("a start says %s, %v", report, err)
	}
	plan, err := hdfsckpt.PlanRollback(t.Context(), s, "", 20)
	must(t, err)
	must(t, plan.Execute(t.Context(), s, "alice"))
	if got := states(list(t, s)); got != "run/global_step20 complete current" {
		t.Errorf("after the rollback: %s", got)
	}
}

// TestDeepSpeedIsPruned: an older one goes, what latest names stays.
func TestDeepSpeedIsPruned(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, step := range []string{"10", "20", "30"} {
		putDeepSpeed(t, s, "run/global_step"+step)
	}
	put(t, s, "run/latest", []byte("global_step30"))
	seal(t, s, "run/global_step10", "run/global_step20", "run/global_step30")
	put(t, s, "run/latest", []byte("global_step10"))
	must(t, hdfsckpt.PlanPrune(list(t, s), 1, 0).Execute(t.Context(), s))
	if got := states(list(t, s)); got != "run/global_step10 sealed current; run/global_step30 sealed" {
		t.Errorf("after a prune: %s", got)
	}
}
