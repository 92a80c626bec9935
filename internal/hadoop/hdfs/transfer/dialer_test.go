package transfer_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/notice"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// nameNode answers what a Dialer asks. Each data encryption key has a number of
// its own.
type nameNode struct {
	encrypt bool
	away    bool // a call takes its context's time
	keys    uint32
}

func (n *nameNode) Call(ctx context.Context, method string, _, resp pb.Message) error {
	if n.away {
		<-ctx.Done()
		return ctx.Err()
	}
	switch r := resp.(type) {
	case *wire.GetServerDefaultsResponseProto:
		r.ServerDefaults = &wire.FsServerDefaultsProto{EncryptDataTransfer: &n.encrypt}
	case *wire.GetDataEncryptionKeyResponseProto:
		n.keys++
		r.DataEncryptionKey = &wire.DataEncryptionKeyProto{
			KeyId: pb.Uint32(-n.keys), BlockPoolId: pb.String("BP-1"), Nonce: []byte("nonce"), EncryptionKey: []byte("key"),
			ExpiryDate: pb.Uint64(uint64(time.Now().Add(time.Hour).UnixMilli())),
		}
	default:
		return fmt.Errorf("%s is not expected", method)
	}
	return nil
}

type message = wire.DataTransferEncryptorMessageProto

func failed(status wire.DataTransferEncryptorMessageProto_DataTransferEncryptorStatus, text string) *message {
	return &message{Status: &status, Message: &text}
}

func challenge(qop string) *message {
	return &message{
		Status:  wire.DataTransferEncryptorMessageProto_SUCCESS.Enum(),
		Payload: fmt.Appendf(nil, `realm="0",nonce="n",charset=utf-8,algorithm=md5-sess,qop="%s",cipher="3des,rc4"`, qop),
	}
}

// dataNode answers each connection's messages with those of one script after the
// other; it returns what it was sent.
func dataNode(t *testing.T, scripts ...[]*message) (*wire.DatanodeIDProto, <-chan *message) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan *message, 10)
	go func() {
		for _, script := range scripts {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			var magic [4]byte
			if _, err := io.ReadFull(r, magic[:]); err != nil || binary.BigEndian.Uint32(magic[:]) != 0xdeadbeef {
				t.Errorf("a handshake begins with %x, %v", magic, err)
			}
			for _, answer := range script {
				got <- read(r)
				b, _ := pb.Marshal(answer)
				_, _ = c.Write(append(binary.AppendUvarint(nil, uint64(len(b))), b...))
			}
			if len(script) > 0 {
				got <- read(r)
			}
			c.Close()
		}
	}()
	a := l.Addr().(*net.TCPAddr)
	return &wire.DatanodeIDProto{IpAddr: pb.String("127.0.0.1"), XferPort: pb.Uint32(uint32(a.Port))}, got
}

// read returns nil at the connection's end.
func read(r *bufio.Reader) *message {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil
	}
	b, m := make([]byte, n), &message{}
	if _, err := io.ReadFull(r, b); err != nil || pb.Unmarshal(b, m) != nil {
		return nil
	}
	return m
}

func dial(t *testing.T, nn *nameNode, protection string, node *wire.DatanodeIDProto) error {
	t.Helper()
	d, err := transfer.New(nn, defaults.New(nn), conf.New(map[string]string{
		"hadoop.security.authentication": "kerberos", "dfs.data.transfer.protection": protection,
	}), notice.None)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = d.Dial(ctx, node, &wire.BlockTokenProto{Identifier: []byte{1}, Password: []byte("secret"), Kind: pb.String(""), Service: pb.String("")})
	return err
}

// TestRefused: what goes wrong is said with what this side does, what the
// DataNode says, and what to look at.
func TestRefused(t *testing.T) {
	const refused = wire.DataTransferEncryptorMessageProto_ERROR
	tokenError := failed(refused, "no such key")
	tokenError.AccessTokenError = pb.Bool(true)
	for _, c := range []struct {
		name       string
		protection string
		script     []*message
		is         error
		says       []string
	}{
		{"another protection", "privacy", []*message{challenge("auth")}, transfer.ErrMismatch,
			[]string{"here dfs.data.transfer.protection is privacy", "the server offers the protection auth"}},
		{"several of ours", "privacy,integrity", []*message{challenge("auth")}, transfer.ErrMismatch,
			[]string{"here dfs.data.transfer.protection is privacy,integrity"}},
		{"no SASL there", "authentication", nil, transfer.ErrMismatch,
			[]string{"expects no SASL", "dfs.encrypt.data.transfer"}},
		{"a refusal", "authentication", []*message{challenge("auth"), failed(refused, "not today")}, nil, []string{`"not today"`}},
		{"the token", "authentication", []*message{challenge("auth"), tokenError}, transfer.ErrTokenRefused, []string{`"no such key"`}},
		{"the token, Hadoop 3.3", "authentication", []*message{challenge("auth"), failed(refused, "Block token with block_token_identifier (…) is expired.")},
			transfer.ErrTokenRefused, []string{"expired"}},
		{"not the server that has the token's password", "authentication",
			[]*message{challenge("auth"), {Status: wire.DataTransferEncryptorMessageProto_SUCCESS.Enum(), Payload: []byte("rspauth=00")}},
			nil, []string{"did not prove"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			node, _ := dataNode(t, c.script)
			err := dial(t, &nameNode{}, c.protection, node)
			if err == nil {
				t.Fatal("no error")
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			for _, s := range append(c.says, address(node)) {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v\ndoes not say %q", err, s)
				}
			}
		})
	}
}

// TestKeyUnknown: a DataNode that no longer has the key is dialled again with a
// new one, once.
func TestKeyUnknown(t *testing.T) {
	unknown := []*message{failed(wire.DataTransferEncryptorMessageProto_ERROR_UNKNOWN_KEY, "no such key")}
	node, got := dataNode(t, unknown, []*message{challenge("auth-conf"), failed(wire.DataTransferEncryptorMessageProto_ERROR, "enough")})
	nn := &nameNode{encrypt: true}
	if err := dial(t, nn, "", node); err == nil || !strings.Contains(err.Error(), `"enough"`) {
		t.Errorf("%v", err)
	}
	if nn.keys != 2 {
		t.Errorf("the NameNode was asked for %d keys", nn.keys)
	}
	<-got // the beginning
	<-got // the end
	<-got // the second beginning
	response := <-got
	if !strings.Contains(string(response.GetPayload()), `username="-2 BP-1 bm9uY2U="`) {
		t.Errorf("the second login is %s", response.GetPayload())
	}
	if o := response.GetCipherOption(); len(o) != 1 || o[0].GetSuite() != wire.CipherSuiteProto_AES_CTR_NOPADDING {
		t.Errorf("AES is not offered: %v", o)
	}

	node, _ = dataNode(t, unknown, unknown)
	if err := dial(t, &nameNode{encrypt: true}, "", node); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("%v", err)
	}
}

// TestSilent: a DataNode that accepts and says nothing costs the context's time.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nn := &nameNode{encrypt: true}
	d, err := transfer.New(nn, defaults.New(nn), conf.New(nil), notice.None)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	node := &wire.DatanodeIDProto{IpAddr: pb.String("127.0.0.1"), XferPort: pb.Uint32(uint32(l.Addr().(*net.TCPAddr).Port))}
	if _, err := d.Dial(ctx, node, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestTheNameNodeIsAway: DataNodes are reached for as long as it is away, and not only for as long
// as what it said of data transfer is new.
func TestTheNameNodeIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		nn := &nameNode{}
		d, err := transfer.New(nn, defaults.New(nn), conf.New(nil), notice.None)
		if err != nil {
			t.Fatal(err)
		}
		node := &wire.DatanodeIDProto{IpAddr: pb.String("127.0.0.1"), XferPort: pb.Uint32(uint32(l.Addr().(*net.TCPAddr).Port))}
		for _, after := range []time.Duration{0, 30 * time.Minute, 2 * time.Hour, time.Second} {
			time.Sleep(after)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			c, err := d.Dial(ctx, node, nil)
			cancel()
			if err != nil {
				t.Fatalf("after another %s: %v", after, err)
			}
			c.Close()
			nn.away = true
		}
	})
}

func address(node *wire.DatanodeIDProto) string {
	return net.JoinHostPort(node.GetIpAddr(), strconv.Itoa(int(node.GetXferPort())))
}
