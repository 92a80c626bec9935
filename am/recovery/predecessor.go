package am

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Predecessor is what an AM attempt finds of the one before it.
type Predecessor struct {
	Journal  core.Journal        // partial if its own cannot be used
	Imported map[string]imported // by role: how its script imports, as far as that is known
	Status   *proto.JobStatus    // as it was shown last; nil if it was not
	Notes    []string            // what could not be read, for the job's story
}

// FindPredecessor reads what the AM attempts before cfg.Attempt have left in the
// job's directory and its stores. What cannot be read is noted; an error means
// that the directory does not answer. Of cfg, Log and Predecessor are not used.
func FindPredecessor(ctx context.Context, cfg Config) (*Predecessor, error) {
	p := &Predecessor{}
	list, err := cfg.Dir.List(ctx, proto.JournalDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for the journal of the application master before this one in %s: %w", cfg.Dir.URI(), err)
	}
	var attempts []int
	for _, i := range list {
		n, err := strconv.Atoi(strings.TrimSuffix(i.Name, ".json"))
		if err == nil && n < cfg.Attempt {
			attempts = append(attempts, n)
		}
	}
	slices.Sort(attempts)
	if len(attempts) == 0 {
		p.Journal.Partial = true
		p.Notes = append(p.Notes, "no journal of an earlier application master is there, so the agents are asked where the tasks are")
	}
	for i, n := range slices.Backward(attempts) {
		f, err := readJournal(ctx, cfg.Dir, journalName(n))
		p.Journal, p.Imported = f.Journal, f.Imported
		if err == nil {
			p.Journal.Partial = p.Journal.Partial || i < len(attempts)-1
			break
		}
		p.Journal.Partial = true
		p.Notes = append(p.Notes, fmt.Sprintf("the journal of application master attempt %d cannot be used, so the agents are asked where the tasks are: %v", n, err))
	}
	text, err := store.ReadFile(ctx, cfg.Dir, proto.StatusFile)
	if err == nil {
		s := &proto.JobStatus{}
		if err = (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, s); err == nil {
			p.Status = s
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Notes = append(p.Notes, fmt.Sprintf("the job's story until now is lost: %v", err))
	}
	if p.Journal.Partial {
		if p.Status != nil {
			learnFrom(&p.Journal, p.Status)
		}
		for _, c := range cfg.Spec.Checkpoints {
			n, err := sealedGeneration(ctx, cfg, c.Uri)
			if err != nil {
				p.Notes = append(p.Notes, fmt.Sprintf("which generation has saved last in %s is not known: %v", c.Uri, err))
			}
			p.Journal.Generation = max(p.Journal.Generation, n)
		}
	}
	return p, nil
}

// learnFrom adds to a partial journal what the job's state as it was shown tells.
func learnFrom(j *core.Journal, s *proto.JobStatus) {
	j.Generation = max(j.Generation, int(s.Generation))
	switch {
	case s.State.Done():
		j.Outcome, j.Why = s.State, s.Why
	case s.State == proto.JobState_JOB_STATE_STOPPING && s.Why == "":
		j.Outcome = proto.JobState_JOB_STATE_SUCCEEDED
	case s.State == proto.JobState_JOB_STATE_STOPPING: // whether it was killed is not shown
		j.Outcome, j.Why = proto.JobState_JOB_STATE_FAILED, s.Why
	}
	index := map[string]int{}
	for i, k := range j.Tasks {
		index[k.Name] = i
	}
	for _, t := range s.Tasks {
		i, ok := index[t.Task]
		if !ok {
			i = len(j.Tasks)
			j.Tasks = append(j.Tasks, core.TaskRecord{Name: t.Task, Attempt: -1})
		}
		k := &j.Tasks[i]
		if int(t.Attempt) >= k.Attempt {
			k.State, k.Attempt, k.Container = t.State, int(t.Attempt), t.Container
		}
		k.Port = cmp.Or(k.Port, int(t.Port))
	}
}

// sealedGeneration is the newest in which this job has sealed a checkpoint.
func sealedGeneration(ctx context.Context, cfg Config, uri string) (int, error) {
	store, err := cfg.OpenStore(ctx, uri)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	list, err := hdfsckpt.Checkpoints(ctx, store)
	newest := 0
	for _, c := range list {
		if c.Manifest != nil && c.Manifest.Job == cfg.ID {
			newest = max(newest, int(c.Manifest.Generation))
		}
	}
	return newest, err
}

func readJournal(ctx context.Context, dir store.Store, name string) (journalFile, error) {
	var f journalFile
	text, err := store.ReadFile(ctx, dir, name)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	switch {
	case err != nil:
		return journalFile{}, fmt.Errorf("%s: %w", path.Join(dir.URI(), name), err)
	case f.Version != journalVersion:
		return journalFile{}, fmt.Errorf("%s: it is of version %d, and this program writes version %d", path.Join(dir.URI(), name), f.Version, journalVersion)
	}
	return f, nil
}
