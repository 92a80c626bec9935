// Package notice is how the clients of Hadoop's services tell what is not the error
// of any call: a DataNode that was left out of a pipeline, a lease that was not
// renewed in time. Who makes a client says where its notices go.
package notice

// Log takes notices; its methods are called from many goroutines. *logrus.Entry is a
// Log.
type Log interface {
	Debugf(format string, args ...any)
	Infof(format string, args ...any)
	Warnf(format string, args ...any)
}

// None drops all notices.
var None Log = none{}

type none struct{}

func (none) Debugf(string, ...any) {}
func (none) Infof(string, ...any)  {}
func (none) Warnf(string, ...any)  {}
