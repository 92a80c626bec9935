package format_test

import (
	"testing"

	"holdfast/hdfsckpt/format"
)

func TestStepAtEnd(t *testing.T) {
	for name, want := range map[string]int64{
		"step_40": 40, "checkpoint-500": 500, "model": format.NoStep, "resnet18": format.NoStep, "model_best": format.NoStep,
		"epoch=3-step=400": 400, "epoch=3-step=400-v1": 400, "step=400-epoch=3": 400, "epoch=03": 3,
		"epoch=3-val_loss=0.45": 3, "epoch=3-step=400-val_loss=0.25": 400, "val_loss=0.45": format.NoStep, "model.05-0.45": format.NoStep, "model.40": 40, "last-v1": format.NoStep,
		"global_step=7": 7, "model-global_step=7-loss=1e-05.5": 7, "timestep=7": 7, "lr=0.5-40": 40,
	} {
		if got := format.StepAtEnd(name); got != want {
			t.Errorf("%s is of step %d, want %d", name, got, want)
		}
	}
}
