package jobs

import (
	"context"
	"io/fs"
	"time"

	"holdfast/hdfsckpt/store"
)

// deniedStore stands for the directory of another user's job, which this user may not
// read: every operation fails with err. What YARN shows of the job, and lets this user
// do to it, depends on the job's ACLs.
type deniedStore struct {
	uri string
	err error
}

var _ store.Store = (*deniedStore)(nil)

func (f *deniedStore) URI() string                                                 { return f.uri }
func (f *deniedStore) Close() error                                                { return nil }
func (f *deniedStore) Stat(context.Context, string) (store.Info, error)            { return store.Info{}, f.err }
func (f *deniedStore) List(context.Context, string) ([]store.Info, error)          { return nil, f.err }
func (f *deniedStore) Open(context.Context, string) (store.Reader, error)          { return nil, f.err }
func (f *deniedStore) Space(context.Context) (store.Space, error)                  { return store.Space{}, f.err }
func (f *deniedStore) Mkdir(context.Context, string, fs.FileMode) error            { return f.err }
func (f *deniedStore) Rename(context.Context, string, string) error                { return f.err }
func (f *deniedStore) RenameNew(context.Context, string, string) error             { return f.err }
func (f *deniedStore) Remove(context.Context, string) error                        { return f.err }
func (f *deniedStore) Chmod(context.Context, string, fs.FileMode) error            { return f.err }
func (f *deniedStore) Chtimes(context.Context, string, time.Time, time.Time) error { return f.err }
func (f *deniedStore) Create(context.Context, string, fs.FileMode) (store.Writer, error) {
	return nil, f.err
}
func (f *deniedStore) Stage(context.Context, string, fs.FileMode) (store.Writer, error) {
	return nil, f.err
}
func (f *deniedStore) Append(context.Context, string, fs.FileMode) (store.Appender, error) {
	return nil, f.err
}
