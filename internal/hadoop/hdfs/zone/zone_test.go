package zone

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/defaults"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// noNameNode answers nothing.
type noNameNode struct{}

func (noNameNode) Call(context.Context, string, pb.Message, pb.Message) error {
	return errors.New("nobody answers")
}

// TestUnknownEncryptionIsRefused: a file that is encrypted in a way that is not known
// here is refused for that, before anybody is asked for its key.
func TestUnknownEncryptionIsRefused(t *testing.T) {
	const (
		zones = wire.CryptoProtocolVersionProto_ENCRYPTION_ZONES
		ctr   = wire.CipherSuiteProto_AES_CTR_NOPADDING
	)
	z := New(noNameNode{}, defaults.New(noNameNode{}), conf.New(nil))
	defer z.Close()
	for name, c := range map[string]struct {
		version wire.CryptoProtocolVersionProto
		suite   wire.CipherSuiteProto
		unknown bool
	}{
		"the cipher":      {zones, wire.CipherSuiteProto_UNKNOWN, true},
		"the version":     {wire.CryptoProtocolVersionProto_UNKNOWN_PROTOCOL_VERSION, ctr, true},
		"nothing of both": {zones, ctr, false},
	} {
		_, err := z.Cipher(t.Context(), "/zone/file", &wire.FileEncryptionInfoProto{
			CryptoProtocolVersion: &c.version, Suite: &c.suite, KeyName: pb.String("key"),
		})
		if errors.Is(err, syscall.ENOTSUP) != c.unknown || err == nil || !IsNoKey(err) || !strings.Contains(err.Error(), "/zone/file") {
			t.Errorf("%s is unknown: %v", name, err)
		}
	}
}
