package formats

import (
	"context"
	"path"
	"regexp"

	"holdfast/hdfsckpt/store"
)

// The file that distinguishes a checkpoint of Hugging Face's Trainer from one of a program
// that saves files of the same names is written last. So it is recorded that a task begins
// the first save in a directory, while there is no other to compare with: what no task has
// begun, such as a model that the user put there, is left alone. A record holds until the
// next save begins. If the save before has no trainer_state.json by then, the format is the
// program's own, and nothing more is recorded for that directory.
//
//	.holdfast/begun/DIR.json    DIR: the directory that checkpoint-N is in, an entry
const begunDir = store.OwnDir + "/begun"

// begunSave is such a record.
type begunSave struct {
	Dir  string `json:"dir"`            // relative to the store's root
	Name string `json:"name,omitempty"` // checkpoint-N in it, the save that was begun last
	Own  bool   `json:"own,omitempty"`  // the format is the program's own
}

func (r begunSave) about() string { return r.Dir }

// isValid reports whether it names no other save than one of Trainer's.
func (r begunSave) isValid() bool { return r.Name == "" || trainerDir.MatchString(r.Name) }

func begunName(dir string) string { return store.RecordName(begunDir, dir) }

func (huggingFace) BeginsSave(name string, dir bool) bool {
	return dir && trainerDir.MatchString(path.Base(name))
}

func (huggingFace) BeginSave(ctx context.Context, s store.Store, name string) error {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	before, err := readBegun(ctx, s, begunName(dir))
	if err != nil || before.Own || before.Name == base {
		return err
	}
	record := begunSave{Dir: dir, Name: base}
	if before.Name != "" {
		ended, err := hasTrainerState(ctx, s, path.Join(dir, before.Name))
		if err != nil {
			return err
		}
		if !ended {
			record = begunSave{Dir: dir, Own: true}
		}
	}
	return writeBegun(ctx, s, record)
}

func (huggingFace) SavesEnded(ctx context.Context, s store.Store) error {
	return eachBegun(ctx, s, func(r begunSave) error {
		ended, err := hasTrainerState(ctx, s, path.Join(r.Dir, r.Name))
		if err != nil || ended || r.Own {
			return err
		}
		return writeBegun(ctx, s, begunSave{Dir: r.Dir, Own: true})
	})
}

// ForgetSaves: that the format is a program's own is known for as long as its directory is there.
func (huggingFace) ForgetSaves(ctx context.Context, s store.Store) error {
	return eachBegun(ctx, s, func(r begunSave) error {
		of := path.Join(r.Dir, r.Name)
		if r.Own {
			of = r.Dir
		}
		return store.RemoveRecordOf(ctx, s, of, begunName(r.Dir))
	})
}

func eachBegun(ctx context.Context, s store.Store, f func(begunSave) error) error {
	return store.EachRecord(ctx, s, begunDir, begunSave.about, func(r begunSave) error {
		if !r.isValid() || !r.Own && r.Name == "" {
			return nil
		}
		return f(r)
	})
}

// readBegun returns the zero record where there is none, or none that can be read.
func readBegun(ctx context.Context, s store.Store, name string) (begunSave, error) {
	r, _, err := store.ReadRecord(ctx, s, name, begunSave.about)
	if !r.isValid() {
		r = begunSave{}
	}
	return r, err
}

func writeBegun(ctx context.Context, s store.Store, r begunSave) error {
	return store.WriteRecord(ctx, s, begunName(r.Dir), r)
}

func hasTrainerState(ctx context.Context, s store.Store, dir string) (bool, error) {
	return store.Exists(ctx, s, path.Join(dir, trainerState))
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
	r, err := readBegun(ctx, s, begunName(path.Dir(name)))
	return !r.Own && r.Name == path.Base(name), err
}
