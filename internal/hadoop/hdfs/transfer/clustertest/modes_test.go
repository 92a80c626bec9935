package clustertest

import (
	"maps"
	"testing"

	"holdfast/internal/testcluster"
)

// TestCiphers is TestProtections with DataNodes of other settings.
func TestCiphers(t *testing.T) {
	for _, m := range []mode{
		{"encryption with AES", settings(aes, "true", "3des"), map[string]string{"authentication": "encryption (AES/CTR/NoPadding)"}},
		{"SASL without AES", settings("", "false", ""), map[string]string{"privacy": "privacy (3des)"}},
	} {
		t.Run(m.name, m.check)
	}
	if !*full {
		return
	}
	for _, m := range []mode{
		{"encryption with RC4", settings("", "true", "rc4"), map[string]string{"": "encryption (rc4)"}},
		{"encryption with 3DES", settings("", "true", "3des"), map[string]string{"privacy": "encryption (3des)"}},
	} {
		t.Run(m.name, m.check)
	}
}

// TestHandshakeSecret: the NameNode has DataNodes demand the protection that the
// client came to it with, though they and the client would do with less.
func TestHandshakeSecret(t *testing.T) {
	if !*full {
		t.Log("only with -matrix")
		return
	}
	for _, newer := range []string{"false", "true"} {
		s := maps.Clone(settings(aes, "false", ""))
		s["dfs.namenode.send.qop.enabled"] = "true"
		s["dfs.block.access.token.protobuf.enable"] = newer
		become(t, s)
		name := "/user/" + testcluster.Alice + "/secret-" + newer
		c := dial(t, map[string]string{"hadoop.rpc.protection": "privacy", "dfs.data.transfer.protection": "authentication,privacy"})
		want := content(5, 100_000)
		c.write(t, name, want)
		same(t, name, c.read(t, name), want)
		c.modes.only(t, "privacy (AES/CTR/NoPadding)")
	}
}
