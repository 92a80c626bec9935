package hdfsckpt_test

import (
	"testing"

	"holdfast/hdfsckpt"
)

// TestTrainersRanks: as many ranks as trained have to have saved their random states.
func TestTrainersRanks(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	arguments := func(ranks uint16) []byte {
		object := func(class string, state string) string { return "c" + class + "\n)\x81" + state + "b" }
		state := object("accelerate.state\nPartialState", pickled("num_processes", pickledNumber(ranks)))
		return archived(t, "archive/data.pkl", "\x80\x02"+object("transformers.training_args\nTrainingArguments", pickled("distributed_state", state))+".")
	}
	for step, x := range map[string]struct {
		ranks   uint16
		without []string
	}{
		"10": {2, nil}, "20": {2, []string{"rng_state_1.pth"}}, "30": {3, nil},
		"40": {4, []string{"rng_state_0.pth", "rng_state_1.pth", "optimizer.pt"}}, // save_only_model
		"50": {1, []string{"rng_state_0.pth", "rng_state_1.pth"}},
	} {
		putTrainer(t, s, "checkpoint-"+step, x.without...)
		put(t, s, "checkpoint-"+step+"/training_args.bin", arguments(x.ranks))
	}
	real := recorded(t, "trainer_args_2_ranks.bin")
	putTrainer(t, s, "checkpoint-60")
	put(t, s, "checkpoint-60/training_args.bin", real)
	putTrainer(t, s, "checkpoint-70", "rng_state_1.pth")
	put(t, s, "checkpoint-70/training_args.bin", real)
	want := `checkpoint-10 huggingface 10 complete
checkpoint-20 huggingface 9 torn (rng_state_1.pth is missing)
checkpoint-30 huggingface 10 torn (rng_state_2.pth is missing)
checkpoint-40 huggingface 7 complete
checkpoint-50 huggingface 8 complete
checkpoint-60 huggingface 10 complete
checkpoint-70 huggingface 9 torn (rng_state_1.pth is missing)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || len(report.Aside) != 0 {
		t.Errorf("moved aside: %s, %v", report, err) // Trainer goes on without it
	}
}
