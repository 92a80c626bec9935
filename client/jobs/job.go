package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/internal/tcp"
	"holdfast/proto"
)

// Job is a job that runs or ran, on the cluster or on this machine. Its methods may be
// called concurrently.
type Job struct {
	ID string

	cluster   *cluster.Cluster // nil: local
	app       yarn.ApplicationID
	home      store.Store
	dir       string          // of the job, below home
	submitted time.Time       // by this process; zero: by another
	history   bool            // dir is all that is known of it: nobody is asked
	process   <-chan struct{} // closed when the application master that this process started has ended; nil: another's

	mu          sync.Mutex
	keys        *jobtls.Keys // the client's; nil until they were read
	tracking    string       // through the ResourceManager's proxy; empty until it is known
	lastQueried time.Time    // when the ResourceManager was last asked for it
}

// Root is the directory of the jobs' directories, below Holdfast's home.
const Root = "jobs"

// Directory returns a job's directory, below Holdfast's home.
func Directory(id string) string { return path.Join(Root, id) }

// OnCluster returns the job that is an application on a cluster. home is Holdfast's
// directory in the home of the job's user. Close closes home and c.
func OnCluster(c *cluster.Cluster, app yarn.ApplicationID, home store.Store) *Job {
	return &Job{ID: app.String(), cluster: c, app: app, home: home, dir: Directory(app.String())}
}

// OnMachine returns a job on this machine. home is the store that OpenLocalHome
// returns. Close closes it.
func OnMachine(home store.Store, id string) *Job {
	return &Job{ID: id, home: home, dir: Directory(id)}
}

// SetStarted records that this process has just started the job, with these keys for
// its clients. For a local job, master is closed when the application master has ended;
// otherwise it is nil. It must be called before any other method.
func (j *Job) SetStarted(keys jobtls.Keys, master <-chan struct{}) {
	j.keys, j.process, j.submitted = &keys, master, time.Now()
}

// Local reports whether the job runs on this machine.
func (j *Job) Local() bool { return j.cluster == nil }

// URI returns the URI of the job's directory.
func (j *Job) URI() string { return j.home.URI() + "/" + j.dir }

// Store returns the store that the job's directory is in. It belongs to the job.
func (j *Job) Store() store.Store { return j.home }

// Dir returns the job's directory, below Store.
func (j *Job) Dir() string { return j.dir }

// denied reports whether the job is another user's, whose directory this user cannot
// read.
func (j *Job) denied() bool { _, is := j.home.(*deniedStore); return is }

// Close closes the connections; the job continues.
func (j *Job) Close() {
	_ = j.home.Close()
	if j.cluster != nil {
		j.cluster.Close()
	}
}

func (j *Job) read(ctx context.Context, name string) ([]byte, error) {
	return store.ReadFile(ctx, j.home, path.Join(j.dir, name))
}

// Spec reads the spec that the job was started with.
func (j *Job) Spec(ctx context.Context) (*proto.JobSpec, error) {
	spec := &proto.JobSpec{}
	text, err := j.read(ctx, proto.SpecFile)
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, spec)
	}
	if err != nil {
		return nil, fmt.Errorf("read the spec of %s in %s: %w", j.ID, j.URI(), err)
	}
	return spec, nil
}

// Draft reads the job as its user described it, in YAML: see SaveDraft.
func (j *Job) Draft(ctx context.Context) ([]byte, error) {
	text, err := j.read(ctx, proto.DraftFile)
	if err != nil {
		return nil, fmt.Errorf("read how %s was described, in %s: %w", j.ID, j.URI(), err)
	}
	return text, nil
}

// SaveDraft writes the job as its user described it to its directory.
func (j *Job) SaveDraft(ctx context.Context, text []byte) error {
	return store.WriteFile(ctx, j.home, path.Join(j.dir, proto.DraftFile), text, 0o600)
}

// master is a connection to the application master.
type master struct {
	proto.JobServiceClient
	conn *grpc.ClientConn
}

func (m *master) close() { _ = m.conn.Close() }

// masterSilence is how long nothing may come from the application master's host, although it is
// probed, before a connection to it breaks: else who follows a job would wait for ever for a node that
// was lost.
const masterSilence = 10 * time.Second

// errNoMaster means that the application master has not published its address yet.
var errNoMaster = errors.New("the application master has not started yet")

// dialToAsk is dial for a call that only an application master can answer.
func (j *Job) dialToAsk(ctx context.Context) (*master, error) {
	m, err := j.dial(ctx)
	if errors.Is(err, errNoMaster) {
		return nil, client.Usagef("%s has no application master that could be asked: %w", j.ID, err)
	}
	return m, err
}

// dial creates a connection to the application master. Whether it answers is known
// after the first call.
func (j *Job) dial(ctx context.Context) (*master, error) {
	if j.history {
		return nil, errNoMaster
	}
	text, err := j.read(ctx, proto.AddressFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoMaster
	}
	var where proto.Address
	if err == nil {
		where, err = proto.UnmarshalAddress(text)
	}
	if err != nil {
		return nil, fmt.Errorf("find the application master of %s: %w", j.ID, err)
	}
	keys, err := j.clientKeys(ctx)
	if err != nil {
		return nil, err
	}
	tls, err := keys.Dialer()
	if err != nil {
		return nil, err
	}
	dialer := tcp.Dialer(cluster.Timeout, masterSilence)
	conn, err := grpc.NewClient("passthrough:///"+where.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(tls)),
		// The explicit dialer also avoids proxies named in the environment.
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return nil, fmt.Errorf("call the application master of %s at %s: %w", j.ID, where.Address, err)
	}
	return &master{proto.NewJobServiceClient(conn), conn}, nil
}

// clientKeys reads the keys with which the client calls the application master.
func (j *Job) clientKeys(ctx context.Context) (*jobtls.Keys, error) {
	j.mu.Lock()
	k := j.keys
	j.mu.Unlock()
	if k != nil {
		return k, nil
	}
	text, err := j.read(ctx, proto.KeysFile)
	if err != nil {
		return nil, fmt.Errorf("read the keys of %s: %w", j.ID, err)
	}
	read, err := jobtls.Unmarshal(text)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keys = &read
	return &read, nil
}
