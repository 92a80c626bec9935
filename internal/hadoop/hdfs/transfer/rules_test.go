package transfer

import (
	"encoding/hex"
	"testing"

	"holdfast/internal/hadoop/sasl"
	wire "holdfast/internal/hadoop/wire/hdfs"
	"holdfast/test/bound"
)

func TestRules(t *testing.T) {
	token := &wire.BlockTokenProto{Identifier: []byte("id")}
	none := &wire.BlockTokenProto{Identifier: []byte{}}
	auth := []string{sasl.Auth}
	for _, c := range []struct {
		name    string
		r       rules
		encrypt bool
		port    uint32
		token   *wire.BlockTokenProto
		want    scheme
		fails   bool
	}{
		{"without security", rules{}, false, 9866, none, plain, false},
		{"without security, though a protection is set", rules{qop: auth}, false, 9866, none, plain, false},
		{"encryption needs no Kerberos", rules{}, true, 9866, token, byKey, false},
		{"encryption goes before all else", rules{secure: true, qop: auth}, true, 1004, token, byKey, false},
		{"a port of root's", rules{secure: true}, false, 1004, token, plain, false},
		{"a port of root's, and a protection", rules{secure: true, qop: auth}, false, 1023, token, plain, false},
		{"an ordinary port", rules{secure: true, qop: auth}, false, 1024, token, byToken, false},
		{"no protection", rules{secure: true}, false, 9866, token, unprotected, false},
		{"the cluster without security", rules{secure: true, qop: auth}, false, 9866, none, plain, true},
		{"the same, allowed", rules{secure: true, qop: auth, fallback: true}, false, 9866, none, plain, false},
		{"allowed, and not needed", rules{secure: true, qop: auth, fallback: true}, false, 9866, token, byToken, false},
	} {
		if got, err := c.r.choose(c.encrypt, c.port, c.token); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
	}
}

func TestModeString(t *testing.T) {
	for want, m := range map[string]Mode{
		"none": {}, "authentication": {QOP: sasl.Auth}, "integrity": {QOP: sasl.AuthInt},
		"privacy (3des)":                 {QOP: sasl.AuthConf, Cipher: "3des"},
		"encryption (AES/CTR/NoPadding)": {QOP: sasl.AuthConf, Cipher: aesName, Key: true},
	} {
		if got := m.String(); got != want {
			t.Errorf("%#v is %s, want %s", m, got, want)
		}
	}
}

// identifiers are of block tokens, made with Hadoop 3.4.2
// (BlockTokenIdentifier.getBytes) for alice, pool BP-1 and block 1073741825.
var identifiers = []struct{ name, hex, secret string }{
	{"older form", "8a019aa724d40084075bcd1400000005616c6963650000000442502d318c400000010105575249544501044449534b010000000444532d31", ""},
	{"older form with a secret", "8a019aa724d40084075bcd1400000005616c6963650000000442502d318c400000010105575249544501044449534b010000000444532d3109617574682d636f6e66", "auth-conf"},
	{"newer form", "0880a893b9aa3310ebe590c50f1a05616c696365220442502d3128818080800430023801420444532d31", ""},
	{"newer form with a secret", "0880a893b9aa3310ebe590c50f1a05616c696365220442502d3128818080800430023801420444532d314a09617574682d636f6e66", "auth-conf"},
}

func TestHandshakeSecret(t *testing.T) {
	for _, c := range identifiers {
		id, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		got := secretOf(&wire.BlockTokenProto{Identifier: id})
		if string(got.GetSecret()) != c.secret || c.secret != "" && got.GetBpid() != "BP-1" {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func FuzzHandshakeSecret(f *testing.F) {
	for _, c := range identifiers {
		id, _ := hex.DecodeString(c.hex)
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id []byte) {
		defer bound.Memory(t, len(id), 100)()
		if got := secretOf(&wire.BlockTokenProto{Identifier: id}); len(got.GetSecret()) > len(id) {
			t.Errorf("%d bytes out of %d", len(got.GetSecret()), len(id))
		}
	})
}
