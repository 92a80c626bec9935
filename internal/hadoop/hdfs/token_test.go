package hdfs_test

import (
	"testing"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
)

func TestTokenService(t *testing.T) {
	properties := map[string]string{
		"fs.defaultFS":                         "hdfs://ns",
		"dfs.nameservices":                     "ns,other",
		"dfs.ha.namenodes.ns":                  "a,b",
		"dfs.namenode.rpc-address.ns.a":        "Host-A.test:8020",
		"dfs.namenode.rpc-address.ns.b":        "host-b.test:8020",
		"dfs.namenode.rpc-address.other":       "127.0.0.1:9000",
		"hadoop.security.token.service.use_ip": "true",
	}
	for uri, want := range map[string]string{
		"hdfs:///user/alice":         "ha-hdfs:ns",
		"hdfs://ns/user/alice":       "ha-hdfs:ns",
		"hdfs://other/user/alice":    "127.0.0.1:9000",
		"hdfs://127.0.0.1:9000/user": "127.0.0.1:9000",
		"hdfs://127.0.0.1/user":      "127.0.0.1:8020",
		"hdfs://localhost:9000/user": "127.0.0.1:9000",
	} {
		if got, err := hdfs.TokenService(uri, conf.New(properties)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", uri, got, err, want)
		}
	}
	properties["hadoop.security.token.service.use_ip"] = "false"
	if got, err := hdfs.TokenService("hdfs://LocalHost:9000/user", conf.New(properties)); err != nil || got != "localhost:9000" {
		t.Errorf("by name: %q, %v", got, err)
	}
	if _, err := hdfs.TokenService("s3://bucket/key", conf.New(properties)); err == nil {
		t.Error("a token for S3")
	}
}
