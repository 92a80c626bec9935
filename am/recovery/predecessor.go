package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core/journal"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Config says where a master attempt finds what earlier ones have left.
type Config struct {
	Job         string // its ID
	Attempt     int    // of the master that looks for its predecessor
	Dir         store.Store
	Checkpoints []*proto.CheckpointSpec
	// OpenStore opens a checkpoint directory.
	OpenStore func(ctx context.Context, uri string) (store.Store, error)
}

// Predecessor is what a master attempt finds of the one before it.
type Predecessor struct {
	Journal        journal.Journal // Partial if the predecessor's own cannot be used
	ImportProfiles map[string]*proto.ImportProfile
	Status         *proto.JobStatus  // as it was saved last; nil if it was not
	Samples        *proto.JobSamples // as they were saved last; nil if they were not
	Notes          []string          // what could not be read, for the event log
}

// FindPredecessor reads what master attempts before cfg.Attempt have left in the job's
// directory and its checkpoint directories. What cannot be read is noted; an error means
// that the job's directory does not answer. It is called after Announce has returned.
func FindPredecessor(ctx context.Context, cfg Config) (*Predecessor, error) {
	p := &Predecessor{}
	attempts, err := journaledAttempts(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p.readJournal(ctx, cfg.Dir, attempts)
	if err := p.readStatus(ctx, cfg.Dir); err != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("the job's event log until now is lost: %v", err))
	}
	p.readSamples(ctx, cfg.Dir)
	if !p.Journal.Partial {
		return p, nil
	}
	if p.Status != nil {
		complement(&p.Journal, p.Status)
	}
	p.readGenerations(ctx, cfg)
	return p, nil
}

// generationLimit is how long checkpoint directories may take to say which generation has
// saved last in them: tasks wait for this attempt, and their leases run out.
const generationLimit = 5 * time.Second

// readGenerations takes in the latest generation that has saved in a checkpoint directory.
func (p *Predecessor) readGenerations(ctx context.Context, cfg Config) {
	ctx, cancel := context.WithTimeoutCause(ctx, generationLimit, fmt.Errorf("it did not answer within %v", generationLimit))
	defer cancel()
	type answer struct {
		generation int
		err        error
	}
	answers := make([]chan answer, len(cfg.Checkpoints))
	for i, c := range cfg.Checkpoints {
		answers[i] = make(chan answer, 1)
		go func() {
			n, err := sealedGeneration(ctx, cfg, c.Uri)
			answers[i] <- answer{n, err}
		}()
	}
	for i, c := range cfg.Checkpoints {
		var a answer
		select {
		case a = <-answers[i]:
		case <-ctx.Done():
			select {
			case a = <-answers[i]: // while another was waited for
			default: // a dead disk or mount heeds no context
				a.err = ctx.Err()
			}
		}
		if ctx.Err() != nil && errors.Is(a.err, ctx.Err()) {
			a.err = context.Cause(ctx)
		}
		if a.err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("which generation has saved last in %s is not known: %v", c.Uri, a.err))
		}
		p.Journal.Generation = max(p.Journal.Generation, a.generation)
	}
}

// journaledAttempts returns the earlier attempts that have a journal, in order.
func journaledAttempts(ctx context.Context, cfg Config) ([]int, error) {
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
	return attempts, nil
}

// readJournal reads the latest of the attempts' journals that can be used.
func (p *Predecessor) readJournal(ctx context.Context, dir store.Store, attempts []int) {
	if len(attempts) == 0 {
		p.Journal.Partial = true
		p.Notes = append(p.Notes, "no journal of an earlier application master is there, so the agents are asked where the tasks are")
	}
	for i, n := range slices.Backward(attempts) {
		j, err := readJournal(ctx, dir, journalName(n))
		if err == nil {
			p.Journal, p.ImportProfiles = j.Journal, make(map[string]*proto.ImportProfile, len(j.ImportProfiles))
			for role, profile := range j.ImportProfiles {
				p.ImportProfiles[role] = profile.ImportProfile
			}
			p.Journal.Partial = p.Journal.Partial || i < len(attempts)-1
			return
		}
		p.Journal.Partial = true
		p.Notes = append(p.Notes, fmt.Sprintf("the journal of application master attempt %d cannot be used, so the agents are asked where the tasks are: %v", n, err))
	}
}

// readStatus reads the saved status, if there is one.
func (p *Predecessor) readStatus(ctx context.Context, dir store.Store) error {
	text, err := store.ReadFile(ctx, dir, proto.StatusFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := &proto.JobStatus{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, s); err != nil {
		return err
	}
	p.Status = s
	return nil
}

// readSamples reads the saved samples. Without them, the curves of the job begin anew.
func (p *Predecessor) readSamples(ctx context.Context, dir store.Store) {
	text, err := store.ReadFile(ctx, dir, proto.SamplesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		p.Samples, err = proto.UnmarshalSamples(text)
	}
	if err != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("what was measured until now is lost: %v", err))
	}
}

// complement adds to a partial journal what the saved status says.
func complement(j *journal.Journal, s *proto.JobStatus) {
	j.Generation = max(j.Generation, int(s.Generation))
	switch {
	case s.State.Done():
		j.Outcome, j.Why = s.State, s.Why
	case s.State == proto.JobState_JOB_STATE_STOPPING && s.Why == "":
		j.Outcome = proto.JobState_JOB_STATE_SUCCEEDED
	case s.State == proto.JobState_JOB_STATE_STOPPING: // the status does not say whether it was killed
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
			j.Tasks = append(j.Tasks, journal.TaskRecord{Name: t.Task, Attempt: -1})
		}
		k := &j.Tasks[i]
		if int(t.Attempt) >= k.Attempt {
			k.State, k.Attempt, k.Container = t.State, int(t.Attempt), t.Container
		}
		k.Port, k.Step = cmp.Or(k.Port, int(t.Port)), max(k.Step, t.Step)
	}
}

// sealedGeneration returns the latest generation in which the job has sealed a checkpoint
// in a directory.
func sealedGeneration(ctx context.Context, cfg Config, uri string) (int, error) {
	store, err := cfg.OpenStore(ctx, uri)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	list, err := hdfsckpt.List(ctx, store)
	latest := 0
	for _, c := range list {
		if c.Manifest != nil && c.Manifest.Job == cfg.Job {
			latest = max(latest, int(c.Manifest.Generation))
		}
	}
	return latest, err
}
