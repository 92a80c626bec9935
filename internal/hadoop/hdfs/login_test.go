package hdfs

import (
	"slices"
	"strings"
	"testing"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
)

// TestTokenForFileSystem: of several tokens, the one for the NameNode, or the
// name service, is taken.
func TestTokenForFileSystem(t *testing.T) {
	c := conf.New(map[string]string{
		"fs.defaultFS": "hdfs://ns", "dfs.nameservices": "ns,other",
		"dfs.ha.namenodes.ns": "a,b", "dfs.namenode.rpc-address.ns.a": "127.0.0.1:8021", "dfs.namenode.rpc-address.ns.b": "127.0.0.2:8021",
		"dfs.ha.namenodes.other": "a", "dfs.namenode.rpc-address.other.a": "127.0.0.3:8021",
	})
	credentials := token.New()
	for alias, t := range map[string]token.Token{
		"1": {Kind: token.KindHDFS, Service: "ha-hdfs:other"}, "2": {Kind: token.KindHDFS, Service: "ha-hdfs:ns"},
		"3": {Kind: token.KindHDFS, Service: "127.0.0.9:8020"}, "4": {Kind: token.KindHDFS, Service: "localhost:8020"},
		"5": {Kind: "another", Service: "127.0.0.7:8020"},
	} {
		credentials.Tokens[alias] = t
	}
	for uri, want := range map[string]string{
		"":                           "ha-hdfs:ns",
		"hdfs://ns/a":                "ha-hdfs:ns",
		"hdfs://other/a":             "ha-hdfs:other",
		"hdfs://127.0.0.9/a":         "127.0.0.9:8020",
		"hdfs://127.0.0.9:8020/":     "127.0.0.9:8020",
		"hdfs://LOCALHOST:8020/user": "localhost:8020", // hadoop.security.token.service.use_ip is false
		"hdfs://127.0.0.7:8020/":     "",
		"hdfs://127.0.0.9:9000/":     "",
	} {
		services, err := tokenServices(uri, c)
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		got, err := findToken(credentials, services)
		if got.Service != want || (err != nil) != (want == "") {
			t.Errorf("%s: the token for %q (%v), of %v", uri, got.Service, err, services)
		}
		if err != nil && !(strings.Contains(err.Error(), services[0]) && strings.Contains(err.Error(), "ha-hdfs:other")) {
			t.Errorf("the error does not tell what is there and what is not: %v", err)
		}
	}
	services, err := tokenServices("hdfs://localhost:8020", conf.New(nil))
	if err != nil || !slices.Contains(services, "127.0.0.1:8020") {
		t.Errorf("a host's token may be for its address: %v, %v", services, err)
	}
}
