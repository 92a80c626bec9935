package write

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/budget"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write/speed"
	"holdfast/internal/hadoop/hdfs/zone"
	"holdfast/internal/hadoop/notice"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Options are a Client's settings; zero values stand for the defaults.
type Options struct {
	// Replication and BlockSize of new files; 3 and 128 MiB.
	Replication int
	BlockSize   int64
	// Checksum of new blocks; CRC32C for each 512 bytes.
	Checksum Checksum
	// Replace says when a lost DataNode's place is taken by another.
	Replace Replace
	// Window bounds the bytes of an open file that are not yet acked, but for
	// the last Write; 4 MiB.
	Window int
	// Memory bounds what open files hold together; 48 MiB for those of this
	// Client.
	Memory *budget.Memory
	// Timeout is how long a DataNode may be silent: 60 s, plus 5 s for each
	// DataNode of the pipeline, as dfs.client.socket-timeout.
	Timeout time.Duration
	// Stall is how long a file may be without an ack of what was sent, during
	// recoveries, too, before it fails: 5 * Timeout, so that several DataNodes can be
	// given up one after the other.
	Stall time.Duration
	// Dial connects to a DataNode for a block with that access token, as package
	// transfer does; its errors name the DataNode. Nil: plain TCP.
	Dial func(ctx context.Context, node *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error)
	// Silent are DataNodes that new files do without at first; those that do not
	// answer are added. Nil: those that this Client has found.
	Silent *transfer.Silent
	// Cipher finds out how a file in an encryption zone is encrypted. Nil: no such
	// file is written.
	Cipher func(ctx context.Context, path string, info *wire.FileEncryptionInfoProto) (*zone.Cipher, error)
	// Log is told of DataNodes that were lost. May be nil.
	Log notice.Log
}

// Client writes files of one file system. Its methods may be called from many
// goroutines.
type Client struct {
	nn   rpc.Caller
	o    Options
	name string // lease holder

	speeds speed.Nodes

	mu    sync.Mutex
	files int           // that are open
	renew chan struct{} // closed to end the renewal
	last  []lastBlock   // of files closed lately, the latest at the end
}

// New makes a client that calls org.apache.hadoop.hdfs.protocol.ClientProtocol
// at the active NameNode through nn.
func New(nn rpc.Caller, o Options) *Client {
	if o.Replication == 0 {
		o.Replication = 3
	}
	if o.BlockSize == 0 {
		o.BlockSize = 128 << 20
	}
	if o.Checksum.Bytes == 0 {
		o.Checksum = standard
	}
	if o.Window == 0 {
		o.Window = 4 << 20
	}
	if o.Memory == nil {
		o.Memory = budget.New(48<<20, nil)
	}
	if o.Timeout == 0 {
		o.Timeout = 60 * time.Second
	}
	if o.Stall == 0 {
		o.Stall = 5 * o.Timeout
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.Silent == nil {
		o.Silent = &transfer.Silent{}
	}
	if o.Log == nil {
		o.Log = notice.None
	}
	return &Client{nn: nn, o: o, name: "holdfast_" + rand.Text()}
}

func dial(ctx context.Context, node *wire.DatanodeIDProto, _ *wire.BlockTokenProto) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address(node))
}

func address(node *wire.DatanodeIDProto) string {
	return net.JoinHostPort(node.GetIpAddr(), strconv.Itoa(int(node.GetXferPort())))
}

// Bits of createFlag (ClientNamenodeProtocol.proto, CreateFlagProto).
const (
	flagCreate    = 0x01
	flagOverwrite = 0x02
	flagAppend    = 0x04
	flagNewBlock  = 0x20
)

// Create makes a file and opens it for writing; overwrite replaces one that is
// there. The parent directory must exist.
func (c *Client) Create(ctx context.Context, path string, perm fs.FileMode, overwrite bool) (*File, error) {
	flags := uint32(flagCreate | flagReplicate)
	if overwrite {
		flags |= flagOverwrite
	}
	resp := &wire.CreateResponseProto{}
	err := c.create(ctx, &wire.CreateRequestProto{
		Src: &path, Masked: &wire.FsPermissionProto{Perm: pb.Uint32(uint32(perm.Perm()))},
		ClientName: &c.name, CreateFlag: &flags, CreateParent: pb.Bool(false),
		Replication: pb.Uint32(uint32(c.o.Replication)), BlockSize: pb.Uint64(uint64(c.o.BlockSize)),
		CryptoProtocolVersion: c.cryptoVersions(),
	}, resp)
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", path, err)
	}
	f := c.open(path, resp.GetFs(), nil)
	f.created = true
	return c.begin(ctx, f, resp.GetFs())
}

// Append opens an existing file for appending, to its last block as long as there is room.
// It returns ErrNotResumed if no DataNode can continue that block.
func (c *Client) Append(ctx context.Context, path string) (*File, error) {
	resp, err := c.append(ctx, path, flagAppend)
	if rpc.IsRemote(err, "java.lang.UnsupportedOperationException") { // an erasure-coded one's (FSDirAppendOp), which is refused below
		return c.AppendBlock(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	f := c.open(path, resp.GetStat(), nil)
	if b := resp.GetBlock(); b != nil && !striped(resp.GetStat()) {
		if err := f.resume(ctx, b); err != nil {
			close(f.done)
			_ = f.Abort() // the first error is the one to tell
			return nil, fmt.Errorf("opening %s to append: %w", path, err)
		}
	}
	return c.begin(ctx, f, resp.GetStat())
}

// AppendBlock is Append for a file whose last block cannot be continued. New bytes go to a
// new block, of which a file can have no more than
// dfs.namenode.fs-limits.max-blocks-per-file.
func (c *Client) AppendBlock(ctx context.Context, path string) (*File, error) {
	resp, err := c.append(ctx, path, flagAppend|flagNewBlock)
	if err != nil {
		return nil, err
	}
	f := c.open(path, resp.GetStat(), resp.GetBlock().GetB())
	return c.begin(ctx, f, resp.GetStat())
}

func (c *Client) append(ctx context.Context, path string, flag uint32) (*wire.AppendResponseProto, error) {
	resp := &wire.AppendResponseProto{}
	if err := c.nn.Call(ctx, "append", &wire.AppendRequestProto{Src: &path, ClientName: &c.name, Flag: &flag}, resp); err != nil {
		return nil, fmt.Errorf("opening %s to append: %w", path, err)
	}
	return resp, nil
}

// begin starts the stream of a file that open has made, unless its bytes are not to
// be written here.
func (c *Client) begin(ctx context.Context, f *File, status *wire.HdfsFileStatusProto) (*File, error) {
	go f.stream()
	if err := f.refuseStriped(status); err != nil {
		return nil, err
	}
	return c.withCipher(ctx, f, status)
}

// open makes a File. Its stream has not been started yet.
func (c *Client) open(path string, status *wire.HdfsFileStatusProto, previous *wire.ExtendedBlockProto) *File {
	c.hold()
	f := newFile(c, path, status, previous)
	f.s.excluded = c.o.Silent.Nodes()
	return f
}

// renewEvery is well within the NameNode's soft limit of 60 s
// (HdfsConstants.LEASE_SOFTLIMIT_PERIOD).
const renewEvery = 30 * time.Second

// hold counts an open file, and starts to renew the lease with the first.
func (c *Client) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files++
	if c.files == 1 {
		c.renew = make(chan struct{})
		go c.renewLease(c.renew)
	}
}

func (c *Client) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files--
	if c.files == 0 {
		close(c.renew)
	}
}

func (c *Client) renewLease(end <-chan struct{}) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), renewEvery)
		err := c.nn.Call(ctx, "renewLease", &wire.RenewLeaseRequestProto{ClientName: &c.name}, &wire.RenewLeaseResponseProto{})
		cancel()
		if errors.Is(err, rpc.ErrClosed) {
			return // with files left open, which nobody can complete any longer
		}
		if err != nil {
			c.o.Log.Warnf("cannot renew the lease of open files at the NameNode; trying again: %v", err)
		}
	}
}
