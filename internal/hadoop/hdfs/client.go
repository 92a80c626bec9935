package hdfs

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/hdfs/zone"
	"holdfast/internal/hadoop/notice"
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

// dialDataNode connects to a DataNode, with the token of a block on it.
type dialDataNode func(context.Context, *wire.DatanodeIDProto, *wire.BlockTokenProto) (net.Conn, error)

// Client is a client of one file system. Its methods may be called from many
// goroutines.
type Client struct {
	nn          *rpc.Client
	files       *write.Client
	zones       *zone.Zones
	dial        dialDataNode
	log         notice.Log
	shared      *Shared
	replication int
	plain       atomic.Bool // the NameNode does not know getLocatedFileInfo
}

// Options are what a client needs besides Hadoop's configuration; zero values stand
// for the defaults.
type Options struct {
	// Shared is shared with other clients; nil: with none.
	Shared *Shared
	// Log takes notices; nil drops them.
	Log notice.Log
	// Kerberos has the client log in without a delegation token, even if there is
	// one: who wants a new token must.
	Kerberos bool
}

// New makes a client of the file system that an hdfs:// URI is on, by what c says of
// it. It connects when it is first used: an error of New is about the configuration.
func New(uri string, c *conf.Conf, o Options) (*Client, error) {
	if o.Shared == nil {
		o.Shared = NewShared()
	}
	if o.Log == nil {
		o.Log = notice.None
	}
	addresses, err := c.NameNodes(uri)
	if err != nil {
		return nil, err
	}
	login, err := loginTo(uri, c, !o.Kerberos)
	if err != nil {
		return nil, err
	}
	files, err := writeOptions(c, o.Log)
	if err != nil {
		return nil, err
	}
	cl := &Client{log: o.Log, shared: o.Shared, replication: files.Replication}
	cl.nn = rpc.New(rpc.Options{
		Protocol:  protocol,
		Addresses: addresses,
		Login:     login,
		Timeout:   attemptLimit,
		Retry:     rpc.Retry{Resend: true, Limit: callLimit},
		Anywhere:  changesNothing,
		OneActive: "org.apache.hadoop.ha.protocolPB.HAServiceProtocolPB", // which NameNodes have, and Routers have not
	})
	said := defaults.New(caller{cl.nn})
	data, err := transfer.New(caller{cl.nn}, said, c, o.Log)
	if err != nil {
		return nil, err
	}
	cl.dial = data.Dial
	cl.zones = zone.New(caller{cl.nn}, said, c)
	files.Cipher = cl.zones.Cipher
	files.Memory, files.Silent, files.Dial, files.Log = o.Shared.memory, &o.Shared.silent, data.Dial, o.Log
	cl.files = write.New(caller{cl.nn}, files)
	return cl, nil
}

// changesNothing reports whether a method of ClientProtocol only reads.
func changesNothing(method string) bool {
	switch method {
	case "getFileInfo", "getLocatedFileInfo", "getBlockLocations", "getListing", "getContentSummary",
		"getServerDefaults", "getFsStats", "getEZForPath", "checkAccess", "getAdditionalDatanode", "getDataEncryptionKey":
		return true
	}
	return false
}

// Close closes the connection. Files that are open can no longer be read
// or completed.
func (c *Client) Close() error {
	c.zones.Close()
	return c.nn.Close()
}

// Replication returns how many replicas new files have.
func (c *Client) Replication() int { return c.replication }

func (c *Client) call(ctx context.Context, method string, req, resp pb.Message) error {
	return caller{c.nn}.Call(ctx, method, req, resp)
}

// caller bounds calls, and waits for a NameNode in safe mode: one that was just
// restarted.
type caller struct{ nn *rpc.Client }

func (c caller) Call(ctx context.Context, method string, req, resp pb.Message) error {
	if err := checkTexts(req); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rpc.Limit(ctx, callLimit))
	defer cancel()
	for wait := backoff.New(100*time.Millisecond, 2*time.Second); ; {
		err := c.nn.Call(ctx, method, req, resp)
		if !rpc.IsSafeMode(err) || !wait.Wait(ctx) {
			return err
		}
	}
}

// notUTF8 is the error of a name that is not UTF-8. Java reads each byte that is not as U+FFFD:
// names that differ in such bytes only would be one.
type notUTF8 struct{}

func (notUTF8) Error() string { return "HDFS has only names that are UTF-8: use another one" }
func (notUTF8) Unwrap() error { return syscall.EILSEQ }

// checkTexts returns an error for a request with a name that the NameNode would read as another.
func checkTexts(req pb.Message) (err error) {
	req.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Kind() == protoreflect.StringKind && !field.IsList() && !utf8.ValidString(v.String()) {
			err = notUTF8{}
		}
		return err == nil
	})
	return err
}

// connectLimit bounds the connection to a DataNode, handshake included.
const connectLimit = 10 * time.Second

// KeyProvider returns the URI of the key servers of the file system's encryption zones;
// "" where there are none.
func (c *Client) KeyProvider(ctx context.Context) (string, error) { return c.zones.Provider(ctx) }

// Zone returns the encryption zone that a path is in, or would be in if it were made;
// nil if none.
func (c *Client) Zone(ctx context.Context, name string) (*zone.Zone, error) {
	z, err := c.zones.Of(ctx, name)
	return z, Wrap("find the encryption zone of", name, err)
}

// Guarded returns a context for changes whose permission may end (rpc.Guarded).
func Guarded(ctx context.Context, may func() error) context.Context { return rpc.Guarded(ctx, may) }

// Permitted returns the result of the function that Guarded was given.
func Permitted(ctx context.Context) error { return rpc.Permitted(ctx) }
