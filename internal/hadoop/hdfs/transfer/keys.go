package transfer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// keys obtains data encryption keys from the NameNode, and keeps one until it expires.
type keys struct {
	nn       rpc.Caller
	defaults *defaults.Defaults

	mu  sync.Mutex
	key *wire.DataEncryptionKeyProto
}

// get returns the key, or nil where data is not encrypted.
func (k *keys) get(ctx context.Context) (*wire.DataEncryptionKeyProto, error) {
	said, err := k.defaults.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking whether data is encrypted: %w", err)
	}
	if !said.GetEncryptDataTransfer() {
		return nil, nil
	}
	k.mu.Lock()
	key := k.key
	k.mu.Unlock()
	if key != nil && time.Now().Before(time.UnixMilli(int64(key.GetExpiryDate()))) {
		return key, nil
	}
	resp := &wire.GetDataEncryptionKeyResponseProto{}
	if err := k.nn.Call(ctx, "getDataEncryptionKey", &wire.GetDataEncryptionKeyRequestProto{}, resp); err != nil {
		return nil, fmt.Errorf("asking for a data encryption key: %w", err)
	}
	if key = resp.GetDataEncryptionKey(); key == nil {
		return nil, errors.New("the NameNode says that data is encrypted (dfs.encrypt.data.transfer), but gives no key: set dfs.block.access.token.enable there")
	}
	k.mu.Lock()
	k.key = key
	k.mu.Unlock()
	return key, nil
}

// drop forgets a key that a DataNode does not know.
func (k *keys) drop(key *wire.DataEncryptionKeyProto) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key == key {
		k.key = nil
	}
}

// keyLogin returns the user name and password of a handshake with a key
// (SaslDataTransferClient.getUserNameFromEncryptionKey). The key's number is a
// signed one in Java.
func keyLogin(key *wire.DataEncryptionKeyProto) (user, password string) {
	nonce, password := sasl.TokenUser(key.GetNonce(), key.GetEncryptionKey())
	return strconv.Itoa(int(int32(key.GetKeyId()))) + " " + key.GetBlockPoolId() + " " + nonce, password
}
