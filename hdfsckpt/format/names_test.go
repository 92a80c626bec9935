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
		"40/actor/model_rank_0.pt": "#/actor/model_rank_0.pt", "run/model_rank_0.pt": "", "rank_0-step_100.pt": "rank_0-step_#.pt",

		// Two networks, an architecture, a version, a fold, and no step.
		"G1-100.pt": "G1-#.pt", "G2-50.pt": "G2-#.pt", "resnet50-100.pt": "resnet50-#.pt", "net-v2-100.pt": "net-v2-#.pt", "llama-7b-100.pt": "llama-7b-#.pt",
		"fold_1-epoch=3.ckpt": "fold_1-epoch=#.ckpt", "lr=0.1-step=40.ckpt": "lr=0.1-step=#.ckpt", "resnet50.pt": "", "tmp_3f2a.pt": "", "model_e3.pt": "model_e#.pt",
		// What was measured is one field.
		"epoch=3-step=120-val_loss=-0.20.ckpt": "epoch=#-step=#-val_loss=#.ckpt", "epoch=9-step=360-val_loss=0.2.ckpt": "epoch=#-step=#-val_loss=#.ckpt",
		"epoch=9-step=360-val_loss=1e-05.ckpt": "epoch=#-step=#-val_loss=#.ckpt", "epoch=9-step=360-val_loss=nan.ckpt": "epoch=#-step=#-val_loss=#.ckpt",
		"weights.05-0.45.keras": "weights.#-#.keras", "weights.05--0.45.keras": "weights.#-#.keras", "step=10-reward=-200.pt": "step=#-reward=#.pt", "step=10-reward=35.pt": "step=#-reward=#.pt",
		"val_loss=-0.2.ckpt": "", "val_loss=0.2.ckpt": "", "model-acc0.9-100.pt": "model-acc#-#.pt",
		// Of two files with the same values, Lightning's later one has a version.
		"epoch=3-step=120-v1.ckpt":              "epoch=#-step=#.ckpt",
		"checkpoint_2026-11-25_15-38-52.901110": "checkpoint_#-#-#_#-#-#", "model.ckpt-300": "model.ckpt-#", "ckpt_e3_100.pt": "ckpt_e#_#.pt", "step100k.pt": "step#k.pt",
		// What a directory's number counts has none of its own, and is not what a run calls its best.
		"40/resnet18.pt": "#/resnet18.pt", "40/model-0.45.pt": "#/model-#.pt", "0/best.pt": "", "0/model_final.pth": "", "step_40/best.pt": "step_#/best.pt",
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
