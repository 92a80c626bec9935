package hdfsckpt

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
)

// List lists the checkpoints in a store and in the directories below its root,
// the newest last: by step, then by time. It looks into every index and manifest, and
// reads none of the data. Those that it has found sealed before, through the same open store, it
// does not look into again while their files are as they were.
func List(ctx context.Context, s store.Store) ([]format.Checkpoint, error) {
	rule, err := format.ReadRule(ctx, s)
	if err != nil {
		return nil, err
	}
	var list []format.Checkpoint
	judged := judgedIn(s)
	var manifests *manifest.All
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { manifests, err = manifest.ReadAll(groupCtx, s); return err })
	group.Go(func() (err error) {
		list, err = format.Search{Rule: rule, Judged: judged}.List(groupCtx, s, formats.All)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range list {
		c := &list[i]
		// What lies beside it may name another one by now.
		was := c.State == format.Unchecked && len(c.Traits().Beside) > 0
		m, unread := manifests.Of(c.Name)
		switch {
		case m != nil && (c.State == format.Complete || was) && c.Agrees(m):
			c.State, c.Why, c.Manifest = format.Sealed, "", m
		case unread != nil && c.State == format.Complete:
			c.Unsealed(unread)
		}
	}
	if judged != nil {
		judged.Keep(rule, list)
	}
	return list, nil
}

// judgedKey is the key of what judgedIn returns in a store's memo.
type judgedKey struct{}

// judgedIn returns what is remembered of the sealed checkpoints of an open store; nil for a store
// without a memo.
func judgedIn(s store.Store) *format.Judged {
	memo := store.Memo(s)
	if memo == nil {
		return nil
	}
	j, _ := memo.LoadOrStore(judgedKey{}, &format.Judged{})
	return j.(*format.Judged)
}

// NotUnderstood returns what is in a store that holds no checkpoint of a known format:
// how many files and directories its root has, and the names of some.
func NotUnderstood(ctx context.Context, s store.Store) (names []string, n int, err error) {
	entries, err := s.List(ctx, ".")
	if err != nil {
		return nil, 0, err
	}
	const most = 5
	for _, e := range entries {
		if strings.HasPrefix(e.Name, ".") {
			continue
		}
		if n++; n <= most {
			name := e.Name
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
	}
	return names, n, nil
}
