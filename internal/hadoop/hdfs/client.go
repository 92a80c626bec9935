package hdfs

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/hdfs/zone"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// protocol is the Java name of ClientProtocol's protobuf form.
const protocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"

// Limits of a call at the NameNode.
const (
	attemptLimit = 25 * time.Second // without an answer
	callLimit    = 55 * time.Second // in all, unless WithLimit says otherwise
)

// WithLimit has the NameNode waited for longer, or shorter, than about a minute in
// calls under a context.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return rpc.WithLimit(ctx, limit)
}

// memory is for the files that this process has open, to read or to write.
var memory = write.NewMemory(48 << 20)

// silent are the DataNodes that did not answer this process.
var silent transfer.Silent

// dialDataNode connects to a DataNode, with the token of a block on it.
type dialDataNode func(context.Context, *wire.DatanodeIDProto, *wire.BlockTokenProto) (net.Conn, error)

// Client is a client of one file system. Its methods may be called from many
// goroutines.
type Client struct {
	nn          *rpc.Client
	files       *write.Client
	zones       *zone.Zones
	dial        dialDataNode
	log         *logrus.Entry
	replication int
	plain       atomic.Bool // the NameNode does not know getLocatedFileInfo
}

// Dial makes a client of the file system that an hdfs:// URI is on. It connects
// by need; the first call tells whether the NameNode is there.
func Dial(_ context.Context, uri string, c *conf.Conf, log *logrus.Entry) (*Client, error) {
	return dial(uri, c, log, true)
}

// DialKerberos is Dial for those who want a delegation token, which is given to
// none who comes with one.
func DialKerberos(_ context.Context, uri string, c *conf.Conf) (*Client, error) {
	return dial(uri, c, nil, false)
}

func dial(uri string, c *conf.Conf, log *logrus.Entry, tokens bool) (*Client, error) {
	addresses, err := c.NameNodes(uri)
	if err != nil {
		return nil, err
	}
	login, err := loginTo(uri, c, tokens)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = logrus.NewEntry(logrus.StandardLogger())
	}
	files, err := writeOptions(c, log)
	if err != nil {
		return nil, err
	}
	cl := &Client{log: log, replication: files.Replication}
	cl.nn = rpc.New(rpc.Options{
		Protocol:  protocol,
		Addresses: addresses,
		Login:     login,
		Timeout:   attemptLimit,
		Retry:     rpc.Retry{Resend: true, Limit: callLimit},
	})
	data, err := transfer.New(caller{cl.nn}, c, log)
	if err != nil {
		return nil, err
	}
	cl.dial = data.Dial
	cl.zones = zone.New(caller{cl.nn}, c)
	files.Cipher = cl.zones.Cipher
	files.Memory, files.Silent, files.Dial, files.Log = memory, &silent, data.Dial, log
	cl.files = write.New(caller{cl.nn}, files)
	return cl, nil
}

// Close lets go of the connection. Files that are open can no longer be read
// or completed.
func (c *Client) Close() error {
	c.zones.Close()
	return c.nn.Close()
}

// Replication is how many replicas new files have.
func (c *Client) Replication() int { return c.replication }

func (c *Client) call(ctx context.Context, method string, req, resp pb.Message) error {
	return caller{c.nn}.Call(ctx, method, req, resp)
}

// caller bounds calls, and waits for a NameNode in safe mode: one that was just
// restarted.
type caller struct{ nn *rpc.Client }

func (c caller) Call(ctx context.Context, method string, req, resp pb.Message) error {
	ctx, cancel := context.WithTimeout(ctx, rpc.Limit(ctx, callLimit))
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := c.nn.Call(ctx, method, req, resp)
		if !rpc.IsSafeMode(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// connectLimit bounds the connection to a DataNode, handshake included.
const connectLimit = 10 * time.Second
