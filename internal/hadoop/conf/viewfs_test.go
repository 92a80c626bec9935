package conf

import (
	"strings"
	"testing"
)

func TestMountTables(t *testing.T) {
	const of = "fs.viewfs.mounttable."
	c := New(map[string]string{
		"fs.defaultFS":                                 "viewfs://cluster/",
		of + "cluster.link./user":                      "hdfs://one/user",
		of + "cluster.link./data/a":                    "hdfs://two:9000/warehouse/",
		of + "cluster.link./s3":                        "s3a://bucket/x",
		of + "cluster.linkNfly.minReplication=2./both": "hdfs://one/x,hdfs://two/x",
		of + "fallback.link./user":                     "hdfs://one/user",
		of + "fallback.linkFallback":                   "hdfs://three/rest",
		of + "merged.linkMergeSlash":                   "hdfs://one/",
	})
	for uri, want := range map[string]string{
		"viewfs://cluster/user/amy/logs": "hdfs://one/user/amy/logs",
		"viewfs:///user/amy":             "hdfs://one/user/amy",
		"viewfs:///user/amy/../bob/":     "hdfs://one/user/bob",
		"viewfs://cluster/data/a":        "hdfs://two:9000/warehouse",
		"viewfs://cluster/data/a/b":      "hdfs://two:9000/warehouse/b",
		"viewfs://fallback/tmp/x":        "hdfs://three/rest/tmp/x",
		"viewfs://merged/tmp/x":          "hdfs://one/tmp/x",
		"hdfs://one/user":                "hdfs://one/user",
		"file:///x":                      "file:///x",
	} {
		if got, err := c.Resolve(uri); err != nil || got != want {
			t.Errorf("%s is at %q, %v, want %q", uri, got, err, want)
		}
	}
	for uri, want := range map[string]string{
		"viewfs://cluster/data/abc": "below /data/a, /s3, /user",
		"viewfs://cluster/s3/y":     "it is not on HDFS",
		"viewfs://cluster/both/y":   "which is not read here",
		"viewfs://other/x":          "no mount table for it (fs.viewfs.mounttable.other.link./PATH)",
	} {
		if got, err := c.Resolve(uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is at %q, %v, want %q", uri, got, err, want)
		}
	}
	if got, err := New(map[string]string{of + "default.link./a": "hdfs://h/a"}).Resolve("viewfs:///a/b"); got != "hdfs://h/a/b" {
		t.Errorf("in the default table it is at %q, %v", got, err)
	}
}
