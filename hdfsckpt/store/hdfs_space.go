package store

import (
	"context"
	"path"
	"strings"
	"time"
)

// spaceFor is how long an answer about space is cached: for quotas the NameNode walks through the
// tree.
const spaceFor = 30 * time.Second

// quotaLimit bounds the call for one directory's quota.
const quotaLimit = 5 * time.Second

// Space returns the minimum of the DataNodes' space and of the quotas of the root and
// of the directories above it, up to the second level: those are a
// user's or project's, the ones above are everybody's. All is divided by the
// replication, as it is bytes of files that a user can write.
func (s *hdfsStore) Space(ctx context.Context) (Space, error) {
	s.mu.Lock()
	space, at := s.space, s.spaceAt
	s.mu.Unlock()
	if time.Since(at) < spaceFor {
		return space, nil
	}
	all, err := s.c.Space(ctx)
	if err != nil {
		return Space{}, err
	}
	replication := int64(max(1, s.c.Replication()))
	space = Space{Total: all.Total / replication, Free: all.Free / replication}
	for dir := s.root; strings.Count(dir, "/") >= 2 || dir == s.root && dir != "/"; dir = path.Dir(dir) {
		quotaCtx, cancel := context.WithTimeout(ctx, quotaLimit)
		q, err := s.c.Quota(quotaCtx, dir)
		cancel()
		if err != nil {
			break // not ours to look at, or too large to count
		}
		if q.BytesLimit >= 0 && (q.BytesLimit-q.Bytes)/replication < space.Free {
			space.Total, space.Free = q.BytesLimit/replication, max(0, q.BytesLimit-q.Bytes)/replication
		}
		if q.FilesLimit >= 0 && (space.FilesTotal == 0 || q.FilesLimit-q.Files < space.FilesFree) {
			space.FilesTotal, space.FilesFree = q.FilesLimit, max(0, q.FilesLimit-q.Files)
		}
	}
	s.mu.Lock()
	s.space, s.spaceAt = space, time.Now()
	s.mu.Unlock()
	return space, nil
}
