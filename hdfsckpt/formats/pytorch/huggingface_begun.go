package pytorch

import (
	"context"
	"path"
	"regexp"

	"holdfast/hdfsckpt/format/saves"
	"holdfast/hdfsckpt/store"
)

// The file that distinguishes a checkpoint of Hugging Face's Trainer from one of a program
// that saves files of the same names is written last. So it is recorded that a task begins
// the first save in a directory, while there is no other to compare with: what no task has
// begun, such as a model that the user put there, is left alone. If the save before has no
// trainer_state.json when the next one begins, the format is the program's own.
//
//	.holdfast/begun/DIR.json    DIR: the directory that checkpoint-N is in, an entry
var begunSaves = saves.Records{
	Dir: store.OwnDir + "/begun",
	Shown: func(ctx context.Context, s store.Store, r saves.Record) (bool, error) {
		return store.Exists(ctx, s, path.Join(r.Save(), trainerState))
	},
}

func begunSave(name string) saves.Record {
	return saves.Record{Dir: path.Dir(name), Name: path.Base(name)}
}

func (HuggingFaceFormat) BeginsSave(name string, dir bool) bool {
	return dir && trainerDir.MatchString(path.Base(name))
}

func (HuggingFaceFormat) BeginSave(ctx context.Context, s store.Store, name string) error {
	return begunSaves.Begin(ctx, s, begunSave(name))
}

func (HuggingFaceFormat) SavesEnded(ctx context.Context, s store.Store) error {
	return begunSaves.Ended(ctx, s)
}

func (HuggingFaceFormat) ForgetSaves(ctx context.Context, s store.Store) error {
	return begunSaves.Forget(ctx, s)
}

var (
	// trainersFile is a file that Trainer, the model or the tokenizer writes into a
	// checkpoint (Trainer._save_checkpoint, _save and _save_optimizer_and_scheduler;
	// save_pretrained), DeepSpeed's and FSDP's included.
	trainersFile = regexp.MustCompile(`^(training_args\.bin|optimizer\.(pt|bin)|scheduler\.pt|scaler\.pt|rng_state(_\d+)?\.pth` +
		`|(|.+_)config\.json|(tokenizer|special_tokens_map|added_tokens|vocab|chat_template)\.json|(vocab|merges)\.txt` +
		`|.+\.(index\.json|model|jinja|py)|README\.md|latest|trainer_state\.json)$`)
	trainersDir = regexp.MustCompile(`^(global_step\d+|pytorch_model_fsdp_\d+|optimizer_\d+|chat_templates|additional_chat_templates)$`)
)

// mayBeTrainers reports whether all that is in a directory is of what Trainer writes.
func mayBeTrainers(entries []store.Info) bool {
	for _, e := range entries {
		if e.IsDir() && !trainersDir.MatchString(e.Name) {
			return false
		}
		if !e.IsDir() && !trainersFile.MatchString(e.Name) && !weightsFile.MatchString(e.Name) {
			return false
		}
	}
	return true
}

// isFirstSave reports whether the only directory checkpoint-N of its directory is the first
// save of a Trainer that was lost before it wrote what distinguishes it: a task has begun it,
// and all that is in it is what Trainer writes.
func isFirstSave(ctx context.Context, s store.Store, name string, entries []store.Info) (bool, error) {
	if !mayBeTrainers(entries) {
		return false, nil
	}
	return begunSaves.IsLast(ctx, s, begunSave(name))
}
