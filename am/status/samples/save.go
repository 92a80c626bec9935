package samples

import (
	"context"
	"path"
	"time"

	"github.com/sirupsen/logrus"
	pb "google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// saveInterval is the pause between two writes of the file, and saveCost and
// maxSaveInterval what it becomes where a write takes long.
const (
	saveInterval    = time.Minute
	saveCost        = 1000 // pause per time that the samples take to be marshalled
	maxSaveInterval = 10 * time.Minute
)

// everything selects all samples.
var everything = &proto.SamplesRequest{Tasks: []string{proto.AllTasks}}

// SaveLoop writes the samples into the job's directory from time to time, until ctx ends.
func (s *Samples) SaveLoop(ctx context.Context, dir store.Store, log *logrus.Entry) {
	pause := saveInterval
	for backoff.Sleep(ctx, pause) {
		pause = min(max(saveInterval, saveCost*s.Save(ctx, dir, log)), maxSaveInterval)
	}
}

// Save writes the samples into the job's directory, and returns how long they took to be
// marshalled. A failure is only logged, since the job does not depend on the file.
func (s *Samples) Save(ctx context.Context, dir store.Store, log *logrus.Entry) (marshalling time.Duration) {
	begin := time.Now()
	b, err := pb.Marshal(s.Select(everything))
	marshalling = time.Since(begin)
	if err == nil {
		err = store.WriteFile(ctx, dir, proto.SamplesFile, b, 0o600)
	}
	if err != nil && ctx.Err() == nil {
		log.WithError(err).Warnf("cannot write %s; the job goes on, what was measured will be out of date after its end", path.Join(dir.URI(), proto.SamplesFile))
	}
	return marshalling
}
