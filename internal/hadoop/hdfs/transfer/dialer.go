package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/notice"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Dialer connects to the DataNodes of one file system. Its methods may be
// called from many goroutines.
type Dialer struct {
	rules  rules
	keys   keys
	byName bool // dfs.client.use.datanode.hostname
	log    notice.Log
}

// New makes a dialer of the file system whose ClientProtocol nn calls, and of which said are the
// defaults. It fails where c contradicts itself. The protection of each connection is logged,
// at level debug.
func New(nn rpc.Caller, said *defaults.Defaults, c *conf.Conf, log notice.Log) (*Dialer, error) {
	qop, err := c.TransferProtection()
	if err != nil {
		return nil, err
	}
	return &Dialer{
		rules: rules{
			secure:   c.Secure(),
			qop:      qop,
			fallback: c.Bool("ipc.client.fallback-to-simple-auth-allowed", false),
		},
		keys:   keys{nn: nn, defaults: said},
		byName: c.Bool("dfs.client.use.datanode.hostname", false),
		log:    log,
	}, nil
}

// ErrTokenRefused: a DataNode does not take a block access token, because it
// has expired or was made with a key that the DataNode does not have. The
// NameNode gives new ones with the block's locations.
var ErrTokenRefused = errors.New("the block access token is not accepted")

// ErrMismatch: this client and a DataNode, or the NameNode, do not agree on the protection. The
// error says what to compare. A DataNode that fails during a handshake cannot be distinguished
// from one that expects none.
var ErrMismatch = errors.New("the protection of data transfer is not the same here and there")

// errKeyUnknown: a DataNode no longer has the data encryption key.
var errKeyUnknown = errors.New("the data encryption key is not known there")

// Dial connects to a DataNode and does the handshake. token is of the block
// that the connection is for. The context bounds all of it; an error names the
// DataNode, and wraps ErrTokenRefused where only a new token is needed.
func (d *Dialer) Dial(ctx context.Context, node *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error) {
	address := d.address(node)
	for try := 1; ; try++ {
		key, err := d.keys.get(ctx)
		if err != nil {
			return nil, err
		}
		c, err := d.dial(ctx, node, token, key)
		if errors.Is(err, errKeyUnknown) && try == 1 {
			d.keys.drop(key)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("connecting to DataNode %s: %w", address, err)
		}
		d.log.Debugf("connected to DataNode %s, protected by %s", address, ModeOf(c))
		return c, nil
	}
}

func (d *Dialer) address(node *wire.DatanodeIDProto) string {
	host := node.GetIpAddr()
	if d.byName {
		host = node.GetHostName()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(node.GetXferPort())))
}

func (d *Dialer) dial(ctx context.Context, node *wire.DatanodeIDProto, token *wire.BlockTokenProto, key *wire.DataEncryptionKeyProto) (net.Conn, error) {
	s, err := d.rules.choose(key != nil, node.GetXferPort(), token)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", d.address(node))
	if err != nil {
		return nil, d.explainAddress(ctx, node, err)
	}
	switch s {
	case plain:
		return raw, nil
	case unprotected:
		return &plainConn{Conn: raw}, nil
	}
	o := sasl.Options{Protocol: "hdfs", Server: "0", Property: "dfs.data.transfer.protection"}
	if s == byKey {
		o.Username, o.Password = keyLogin(key)
		o.QOP = []string{sasl.AuthConf}
		if a := key.GetEncryptionAlgorithm(); a != "" { // dfs.encrypt.data.transfer.algorithm
			o.Ciphers = []string{a}
		}
	} else {
		o.Username, o.Password = sasl.TokenUser(token.GetIdentifier(), token.GetPassword())
		o.QOP = d.rules.qop
	}
	deadline, _ := ctx.Deadline()
	_ = raw.SetDeadline(deadline) // fails only when closed, and then so does what follows
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	c, err := handshake(raw, o, secretOf(token))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		raw.Close()
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded): // the context's, a moment before it
			err = context.DeadlineExceeded
		}
		return nil, d.explain(err, s)
	}
	c.mode.Key = s == byKey
	return c, raw.SetDeadline(time.Time{})
}

// resolveLimit bounds the look-up of a DataNode's name for an error.
const resolveLimit = time.Second

// explainAddress adds to the error of a connection, where that may be the remedy, that DataNodes
// are called by their addresses, or by their names. A DataNode's address is the one from which
// it called the NameNode when it registered (DatanodeManager.registerDatanode), and need not be
// one that it listens on, or that is reached from here; its name is dfs.datanode.hostname.
func (d *Dialer) explainAddress(ctx context.Context, node *wire.DatanodeIDProto, err error) error {
	if d.byName {
		return fmt.Errorf("%w (DataNodes are called by their names, as dfs.client.use.datanode.hostname is true; this one has the address %s)", err, node.GetIpAddr())
	}
	if node.GetHostName() == "" || node.GetHostName() == node.GetIpAddr() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveLimit)
	defer cancel()
	addresses, lookup := net.DefaultResolver.LookupHost(ctx, node.GetHostName())
	if lookup != nil || slices.Contains(addresses, node.GetIpAddr()) {
		return err // its name does not lead further
	}
	return fmt.Errorf("%w; its name, %s, leads to %s: if that is where it is reached from here, set dfs.client.use.datanode.hostname to true in hdfs-site.xml", err, node.GetHostName(), strings.Join(addresses, ", "))
}

// explain adds this client's settings to an error.
func (d *Dialer) explain(err error, s scheme) error {
	if errors.Is(err, errKeyUnknown) || errors.Is(err, ErrTokenRefused) {
		return err
	}
	if s == byKey {
		return fmt.Errorf("SASL handshake with the NameNode's data encryption key (dfs.encrypt.data.transfer is true there): %w", err)
	}
	return fmt.Errorf("SASL handshake, here dfs.data.transfer.protection is %s: %w", names(d.rules.qop), err)
}

// names are QOPs as dfs.data.transfer.protection has them.
func names(qop []string) string {
	list := make([]string, len(qop))
	for i, q := range qop {
		list[i] = Mode{QOP: q}.String()
	}
	return strings.Join(list, ",")
}
