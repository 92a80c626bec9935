package format_test

import (
	"testing"

	"holdfast/hdfsckpt/format"
)

func TestSeriesOf(t *testing.T) {
	for name, want := range map[string]string{
		"model-10.pt": "model-#.pt", "run/checkpoint-500": "run/checkpoint-#", "40": "#", "last.pt": "", "run/model": "",
		"0/checkpoints/epoch=1-step=10.ckpt": "0/checkpoints/epoch=#-step=#.ckpt", "1/40": "1/#", // a number alone may count runs
		"step_10/model": "step_#/model", "run/40/model": "run/#/model", "3/40/actor/model.pt": "3/#/actor/model.pt",
		"epoch_3/step_100": "epoch_#/step_#", "a/global_step10/actor/model_10.pt": "a/global_step#/actor/model_#.pt",
		"40/actor/model_rank_0.pt": "#/actor/model_rank_0.pt", "run/model_rank_0.pt": "run/model_rank_#.pt",
	} {
		if got := format.SeriesOf(name); got != want {
			t.Errorf("%s is of the series %q, want %q", name, got, want)
		}
	}
}

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
