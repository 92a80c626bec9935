package status

import (
	"context"
	"path"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// Limits on the work of writing status.json and the samples. The pause after a write is a
// multiple of the time that it took to marshal what was written, within bounds.
const (
	saveInterval = time.Second // the shortest pause
	saveCost     = 30          // pause per marshalling time
	// maxSaveInterval bounds the pause, since a successor falls back to status.json
	// where the journal is lost.
	maxSaveInterval = 5 * time.Second
	// The same where only heartbeats have changed the status.
	heartbeatSaveCost        = 1000
	maxHeartbeatSaveInterval = 30 * time.Second
	// Samples.
	samplesInterval    = time.Minute
	samplesCost        = 1000
	maxSamplesInterval = 10 * time.Minute
)

// TakeOver has the status of an application master that begins go on from what its predecessor
// has saved. What is taken over is saved's no longer.
func TakeOver(begun, saved *proto.JobStatus) {
	begun.StartedUnixMs, begun.Events = saved.StartedUnixMs, saved.Events
	begun.Incidents, begun.Step, begun.CompleteStep = saved.Incidents, saved.Step, saved.CompleteStep
	begun.CompleteStepAtUnixMs, begun.NextCheckpointUnixMs, begun.SaveMs = saved.CompleteStepAtUnixMs, saved.NextCheckpointUnixMs, saved.SaveMs
	begun.Scalars, begun.Generations = saved.Scalars, saved.Generations
	for _, t := range saved.Tasks {
		b := &proto.TaskStatus{
			Task: t.Task, Attempt: t.Attempt, Step: t.Step, StepAtUnixMs: t.StepAtUnixMs,
			MemoryPeakBytes: t.MemoryPeakBytes, Line: t.Line, LineAtUnixMs: t.LineAtUnixMs, RestoreMs: t.RestoreMs,
			Why: t.Why, Tail: t.Tail, ExitCode: t.ExitCode, ExitSignal: t.ExitSignal, Stages: t.Stages,
		}
		if t.State == proto.TaskState_TASK_STATE_PARKED { // it says why the others work without it
			b.Why = ""
		}
		begun.Tasks = append(begun.Tasks, b)
	}
}

// allSamples selects all samples.
var allSamples = &proto.SamplesRequest{Tasks: []string{proto.AllTasks}}

// SaveLoop writes status.json after each change until ctx ends, less often where only
// heartbeats change it.
func (s *Store) SaveLoop(ctx context.Context, dir store.Store, log *logrus.Entry) {
	for {
		status, changed, news := s.snapshot()
		took := saveStatus(ctx, dir, status, log)
		pause := max(saveInterval, min(saveCost*took, maxSaveInterval))
		if !backoff.Sleep(ctx, pause) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-time.After(min(heartbeatSaveCost*took, maxHeartbeatSaveInterval) - pause):
		}
	}
}

// SaveSamplesLoop writes the samples from time to time, until ctx ends.
func (s *Store) SaveSamplesLoop(ctx context.Context, dir store.Store, log *logrus.Entry) {
	pause := samplesInterval
	for backoff.Sleep(ctx, pause) {
		pause = min(max(samplesInterval, samplesCost*s.saveSamples(ctx, dir, log)), maxSamplesInterval)
	}
}

// Save writes the present status and the samples.
func (s *Store) Save(ctx context.Context, dir store.Store, log *logrus.Entry) {
	status, _ := s.Snapshot()
	saveStatus(ctx, dir, status, log)
	s.saveSamples(ctx, dir, log)
}

func saveStatus(ctx context.Context, dir store.Store, status *proto.JobStatus, log *logrus.Entry) time.Duration {
	return save(ctx, dir, proto.StatusFile, func() ([]byte, error) {
		return protojson.MarshalOptions{Multiline: true}.Marshal(status)
	}, log)
}

func (s *Store) saveSamples(ctx context.Context, dir store.Store, log *logrus.Entry) time.Duration {
	return save(ctx, dir, proto.SamplesFile, func() ([]byte, error) { return pb.Marshal(s.samples.Select(allSamples)) }, log)
}

// save writes a file of the job's directory, and returns how long it took to marshal. A
// failure is only logged, since the job does not depend on the file.
func save(ctx context.Context, dir store.Store, name string, marshal func() ([]byte, error), log *logrus.Entry) (marshalling time.Duration) {
	begin := time.Now()
	text, err := marshal()
	marshalling = time.Since(begin)
	if err == nil {
		err = store.WriteFile(ctx, dir, name, text, 0o600)
	}
	if err != nil && ctx.Err() != context.Canceled { // out of time it is a failure as any other
		log.WithError(err).Warnf("cannot write %s; the job does not depend on it, but what it says will be out of date after the job's end", path.Join(dir.URI(), name))
	}
	return marshalling
}
