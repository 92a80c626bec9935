package hdfs

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"
	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// protocol is the Java name of ClientProtocol's protobuf form.
const protocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"

// Limits of a call at the NameNode.
const (
	attemptLimit = 25 * time.Second // without an answer
	callLimit    = 55 * time.Second // in all
)

// DialDataNode connects to a DataNode.
type DialDataNode func(ctx context.Context, node *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error)

// Client is a client of one file system. Its methods may be called from many
// goroutines.
type Client struct {
	nn          *rpc.Client
	files       *write.Client
	dial        DialDataNode
	log         *logrus.Entry
	replication int
}

// Dial makes a client of the file system that an hdfs:// URI is on. It connects
// by need; the first call tells whether the NameNode is there.
func Dial(_ context.Context, uri string, c *conf.Conf, log *logrus.Entry) (*Client, error) {
	addresses, err := c.NameNodes(uri)
	if err != nil {
		return nil, err
	}
	replication, err := c.Int("dfs.replication", 3)
	if err != nil {
		return nil, err
	}
	blockSize, err := c.Int("dfs.blocksize", 128<<20)
	if err != nil {
		return nil, err
	}
	login, err := login(uri, c)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = logrus.NewEntry(logrus.StandardLogger())
	}
	cl := &Client{log: log, replication: int(replication), dial: dialer(c.Bool("dfs.client.use.datanode.hostname", false))}
	cl.nn = rpc.New(rpc.Options{
		Protocol:  protocol,
		Addresses: addresses,
		Login:     login,
		Timeout:   attemptLimit,
		Retry:     rpc.Retry{Resend: true, Limit: callLimit},
	})
	cl.files = write.New(caller{cl.nn}, write.Options{
		Replication: int(replication), BlockSize: blockSize, Dial: cl.dial, Log: log,
	})
	return cl, nil
}

// login is by token where the cluster is secure: containers have one.
func login(uri string, c *conf.Conf) (rpc.Login, error) {
	if !c.Secure() {
		return nil, nil
	}
	if c.Get("dfs.data.transfer.protection") != "" || c.Bool("dfs.encrypt.data.transfer", false) {
		return nil, fmt.Errorf("cannot use %s: its DataNodes demand SASL (dfs.data.transfer.protection or dfs.encrypt.data.transfer), which is not supported yet", uri)
	}
	credentials, err := token.FromEnvironment()
	if err != nil {
		return nil, err
	}
	t, ok := credentials.Find(token.KindHDFS, "")
	if !ok {
		return nil, fmt.Errorf("cannot use %s: the cluster demands Kerberos, and there is no HDFS delegation token in the file that %s names", uri, token.EnvFile)
	}
	qop, err := c.RPCProtection()
	if err != nil {
		return nil, err
	}
	return rpc.TokenLogin(t, qop...), nil
}

// Close lets go of the connection. Files that are open can no longer be read
// or completed.
func (c *Client) Close() error { return c.nn.Close() }

// Replication is how many replicas new files have.
func (c *Client) Replication() int { return c.replication }

func (c *Client) call(ctx context.Context, method string, req, resp pb.Message) error {
	return caller{c.nn}.Call(ctx, method, req, resp)
}

// caller bounds calls, and waits for a NameNode in safe mode: one that was just
// restarted.
type caller struct{ nn *rpc.Client }

func (c caller) Call(ctx context.Context, method string, req, resp pb.Message) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
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

// connectLimit bounds the TCP connection to a DataNode.
const connectLimit = 10 * time.Second

func dialer(byName bool) DialDataNode {
	return func(ctx context.Context, node *wire.DatanodeIDProto, _ *wire.BlockTokenProto) (net.Conn, error) {
		host := node.GetIpAddr()
		if byName {
			host = node.GetHostName()
		}
		d := net.Dialer{Timeout: connectLimit}
		return d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(node.GetXferPort()))))
	}
}
