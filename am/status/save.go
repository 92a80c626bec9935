package status

import (
	"context"
	"path"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// Limits on the work of writing status.json. The pause after a write is a multiple of
// the time that it took to marshal the status, within bounds.
const (
	saveInterval = time.Second // the shortest pause
	saveCost     = 30          // pause per marshalling time
	// maxSaveInterval bounds the pause, since a successor falls back to status.json
	// where the journal is lost.
	maxSaveInterval = 5 * time.Second
	// The same where only heartbeats have changed the status.
	heartbeatSaveCost        = 1000
	maxHeartbeatSaveInterval = 30 * time.Second
)

// SaveLoop writes status.json after each change until ctx ends, less often where only
// heartbeats change it.
func (s *Store) SaveLoop(ctx context.Context, dir store.Store, log *logrus.Entry) {
	for {
		status, changed, news := s.snapshot()
		took := Save(ctx, dir, status, log)
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

// Save writes status.json, and returns how long it took to marshal. A failure is only
// logged, since the job does not depend on the file.
func Save(ctx context.Context, dir store.Store, status *proto.JobStatus, log *logrus.Entry) (marshalling time.Duration) {
	begin := time.Now()
	text, err := protojson.MarshalOptions{Multiline: true}.Marshal(status)
	marshalling = time.Since(begin)
	if err == nil {
		err = store.WriteFile(ctx, dir, proto.StatusFile, text, 0o600)
	}
	if err != nil && ctx.Err() == nil {
		log.WithError(err).Warnf("cannot write %s; the job goes on, `status` after its end will be out of date", path.Join(dir.URI(), proto.StatusFile))
	}
	return marshalling
}
