package jobs

import (
	"context"
	"io/fs"
	"time"

	"holdfast/hdfsckpt/store"
)

// foreign stands for the directory of a job of another user, which this one may
// not read: all that is tried there fails with err. What YARN tells of the job,
// and lets this user do to it, goes by the job's ACLs.
type foreign struct {
	uri string
	err error
}

var _ store.Store = (*foreign)(nil)

func (f *foreign) URI() string                                                 { return f.uri }
func (f *foreign) Close() error                                                { return nil }
func (f *foreign) Stat(context.Context, string) (store.Info, error)            { return store.Info{}, f.err }
func (f *foreign) List(context.Context, string) ([]store.Info, error)          { return nil, f.err }
func (f *foreign) Open(context.Context, string) (store.Reader, error)          { return nil, f.err }
func (f *foreign) Space(context.Context) (store.Space, error)                  { return store.Space{}, f.err }
func (f *foreign) Mkdir(context.Context, string, fs.FileMode) error            { return f.err }
func (f *foreign) Rename(context.Context, string, string) error                { return f.err }
func (f *foreign) RenameNew(context.Context, string, string) error             { return f.err }
func (f *foreign) Remove(context.Context, string) error                        { return f.err }
func (f *foreign) Chmod(context.Context, string, fs.FileMode) error            { return f.err }
func (f *foreign) Chtimes(context.Context, string, time.Time, time.Time) error { return f.err }
func (f *foreign) Create(context.Context, string, fs.FileMode) (store.Writer, error) {
	return nil, f.err
}
func (f *foreign) Stage(context.Context, string, fs.FileMode) (store.Writer, error) {
	return nil, f.err
}
func (f *foreign) Append(context.Context, string, fs.FileMode) (store.Appender, error) {
	return nil, f.err
}
