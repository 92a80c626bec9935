package conf

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/test/bound"
)

// write makes a configuration directory of these files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func site(properties ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><?xml-stylesheet type="text/xsl" href="configuration.xsl"?><!-- x --><configuration>`)
	for i := 0; i < len(properties); i += 2 {
		b.WriteString("\n <property><name>" + properties[i] + "</name><value>" + properties[i+1] + "</value></property>")
	}
	return b.String() + "\n</configuration>\n"
}

func load(t *testing.T, files map[string]string) *Conf {
	t.Helper()
	c, err := Load(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoadOrderAndFinal(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": `<configuration>
			<property><name>a</name><value>core</value></property>
			<property><name>b</name><value>core</value><final>true</final></property>
			<property name="attribute" value="yes"/>
			<property><name> padded </name><value> x </value><description>d</description><source>s</source></property>
			<property><name>no.value</name></property>
			</configuration>`,
		"hdfs-site.xml":   site("a", "hdfs", "b", "hdfs"),
		"mapred-site.xml": site("a", "mapred"),
	})
	for key, want := range map[string]string{"a": "hdfs", "b": "core", "attribute": "yes", "padded": "x", "no.value": "", "fs.defaultFS": "file:///"} {
		if got := c.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "b is final") || !strings.Contains(w, "fs.defaultFS is not set") {
		t.Errorf("warnings: %s", w)
	}
}

func TestSubstitution(t *testing.T) {
	t.Setenv("HF_SET", "value")
	t.Setenv("HF_EMPTY", "")
	os.Unsetenv("HF_UNSET")
	c := New(map[string]string{
		"a": "1", "b": "${a}${a}", "c": "x${b}y", "unknown": "p${no.such}q",
		"loop": "${loop2}", "loop2": "${loop}", "self": "${self}x", "inner": "${${which}}", "which": "a",
		"env": "${env.HF_SET}", "env1": "${env.HF_UNSET:-d}", "env2": "${env.HF_EMPTY:-d}", "env3": "${env.HF_EMPTY-d}", "env4": "${env.HF_UNSET}",
		"open": "${a", "empty": "${}",
	})
	for key, want := range map[string]string{
		"c": "x11y", "unknown": "p${no.such}q", "inner": "1", "env": "value", "env1": "d", "env2": "d", "env3": "",
		"env4": "${env.HF_UNSET}", "open": "${a", "empty": "${}", "yarn.resourcemanager.address": "0.0.0.0:8032",
	} {
		if got := c.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	c.Get("loop") // ends
	c.Get("self")
}

func TestTypes(t *testing.T) {
	c := New(map[string]string{"n": "0x10", "k": "128m", "zero": "010", "bad": "many", "yes": "TRUE", "list": " a, b,,c ",
		"s": "30s", "bare": "15", "ms": "250ms", "neg": "-1", "huge": "99999999999999d"})
	for key, want := range map[string]int64{"n": 16, "k": 128 << 20, "zero": 10, "unset": 7} {
		if got, err := c.Int(key, 7); err != nil || got != want {
			t.Errorf("Int(%s) = %d, %v; want %d", key, got, err, want)
		}
	}
	if _, err := c.Int("bad", 0); err == nil || !strings.Contains(err.Error(), `bad is "many"`) {
		t.Errorf("a bad number: %v", err)
	}
	for key, want := range map[string]time.Duration{"s": 30 * time.Second, "bare": 15 * time.Minute, "ms": 250 * time.Millisecond, "neg": -time.Minute, "unset": time.Hour} {
		if got, err := c.Duration(key, time.Minute, time.Hour); err != nil || got != want {
			t.Errorf("Duration(%s) = %v, %v; want %v", key, got, err, want)
		}
	}
	for _, key := range []string{"bad", "huge"} {
		if d, err := c.Duration(key, time.Second, 0); err == nil {
			t.Errorf("Duration(%s) = %v", key, d)
		}
	}
	if !c.Bool("yes", false) || c.Bool("bad", false) || !c.Bool("unset", true) {
		t.Error("Bool")
	}
	if got := c.List("list"); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("List: %q", got)
	}
}

func TestRPCProtection(t *testing.T) {
	for text, want := range map[string][]string{"": {"auth"}, "privacy": {"auth-conf"}, "Integrity, authentication": {"auth-int", "auth"}, "secret": nil} {
		p := map[string]string{}
		if text != "" {
			p["hadoop.rpc.protection"] = text
		}
		if got, err := New(p).RPCProtection(); !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	t.Setenv(EnvDir, "")
	file := filepath.Join(write(t, map[string]string{"f": ""}), "f")
	for name, dir := range map[string]string{"nothing set": "", "not there": "/no/such/dir", "a file": file, "empty": t.TempDir()} {
		_, err := Load(dir)
		if err == nil || !strings.Contains(err.Error(), EnvDir) || !strings.Contains(err.Error(), "core-site.xml") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "<a/>", "<configuration>", "<configuration><property></configuration>"} {
		dir := write(t, map[string]string{"core-site.xml": text})
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "core-site.xml")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// xi is the start of a site file that includes others.
const xi = `<configuration xmlns:xi="http://www.w3.org/2001/XInclude">`

func TestIncludes(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": xi + `<property><name>before</name><value>core</value></property><property><name>kept</name><value>core</value><final>true</final></property>
			<xi:include href="more.xml"/><xi:include href="none.xml"><xi:fallback><property><name>fallback</name><value>taken</value></property></xi:fallback></xi:include>
			<include href="none.xml"><fallback/></include>
			<property><name>after</name><value>core</value></property></configuration>`,
		"more.xml":  xi + `<xi:include href="again.xml"><xi:fallback><property><name>fallback2</name><value>taken</value></property></xi:fallback></xi:include></configuration>`,
		"again.xml": site("before", "again", "after", "again", "kept", "again"),
	})
	for key, want := range map[string]string{"before": "again", "after": "core", "kept": "core", "fallback": "taken", "fallback2": ""} {
		if got := c.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for name, test := range map[string]struct{ text, want string }{
		"missing": {`<xi:include href="none.xml"/>`, "none.xml"},
		"itself":  {`<xi:include href="core-site.xml"/>`, "include itself"},
		"a web":   {`<xi:include href="http://somewhere/x.xml"/>`, "only files"},
		"nothing": {`<xi:include/>`, "only files"},
	} {
		dir := write(t, map[string]string{"core-site.xml": xi + test.text + "</configuration>"})
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRenamed: of two names of one property, the one that is read later counts.
func TestRenamed(t *testing.T) {
	c := load(t, map[string]string{"core-site.xml": site("fs.defaultFS", "hdfs://new", "fs.default.name", "hdfs://old"), "hdfs-site.xml": site("dfs.block.size", "1m", "dfs.blocksize", "2m")})
	for key, want := range map[string]string{"fs.defaultFS": "hdfs://old", "fs.default.name": "hdfs://old", "dfs.blocksize": "2m", "dfs.block.size": "2m"} {
		if got := c.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestNameNodes(t *testing.T) {
	c := New(map[string]string{
		"fs.defaultFS": "hdfs://cluster", "dfs.nameservices": "cluster,plain", "dfs.ha.namenodes.cluster": "nn1, nn2",
		"dfs.namenode.rpc-address.cluster.nn1": "one:9000", "dfs.namenode.rpc-address.cluster.nn2": "two",
		"dfs.namenode.rpc-address.plain": "three:1",
	})
	for uri, want := range map[string][]string{
		"": {"one:9000", "two:8020"}, "/user/x": {"one:9000", "two:8020"}, "hdfs:///user": {"one:9000", "two:8020"},
		"hdfs://cluster/a": {"one:9000", "two:8020"}, "hdfs://plain/a": {"three:1"}, "hdfs://host/a": {"host:8020"}, "hdfs://host:1/a": {"host:1"},
		"hdfs://[::1]:5/a": {"[::1]:5"},
	} {
		if got, err := c.NameNodes(uri); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("NameNodes(%q) = %q, %v; want %q", uri, got, err, want)
		}
	}
	if name, ok := c.Logical("/x"); !ok || name != "cluster" {
		t.Errorf("Logical: %q, %v", name, ok)
	}
	for _, uri := range []string{"file:///x", "s3a://b/x", "hdfs://%zz/"} {
		if got, err := c.NameNodes(uri); err == nil {
			t.Errorf("NameNodes(%q) = %q", uri, got)
		}
	}
	if _, err := New(nil).NameNodes(""); err == nil || !strings.Contains(err.Error(), "fs.defaultFS") {
		t.Errorf("without a default file system: %v", err)
	}
	c.Set("dfs.namenode.rpc-address.cluster.nn2", "")
	if _, err := c.NameNodes(""); err == nil || !strings.Contains(err.Error(), "dfs.namenode.rpc-address.cluster.nn2") {
		t.Errorf("a NameNode without address: %v", err)
	}
}

func TestResourceManagers(t *testing.T) {
	for _, x := range []struct {
		conf map[string]string
		want ResourceManagers
	}{
		{map[string]string{"yarn.resourcemanager.hostname": "rm"},
			ResourceManagers{Client: []string{"rm:8032"}, Scheduler: []string{"rm:8030"}, Web: []string{"rm:8088"}}},
		{map[string]string{"yarn.resourcemanager.address": "rm:1", "yarn.resourcemanager.scheduler.address": "rm", "yarn.http.policy": "HTTPS_ONLY"},
			ResourceManagers{Client: []string{"rm:1"}, Scheduler: []string{"rm:8030"}, Web: []string{"0.0.0.0:8090"}, HTTPS: true}},
		{map[string]string{"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b", "yarn.resourcemanager.hostname.a": "ha",
			"yarn.resourcemanager.hostname.b": "hb", "yarn.resourcemanager.scheduler.address.b": "hb:7"},
			ResourceManagers{Client: []string{"ha:8032", "hb:8032"}, Scheduler: []string{"ha:8030", "hb:7"}, Web: []string{"ha:8088", "hb:8088"}}},
	} {
		if got, err := New(x.conf).ResourceManagers(); err != nil || !reflect.DeepEqual(got, x.want) {
			t.Errorf("%v: %+v, %v", x.conf, got, err)
		}
	}
	for _, conf := range []map[string]string{
		{"yarn.resourcemanager.ha.enabled": "true"},
		{"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a"},
	} {
		if _, err := New(conf).ResourceManagers(); err == nil || !strings.Contains(err.Error(), "yarn-site.xml") {
			t.Errorf("%v: %v", conf, err)
		}
	}
}

// TestPack carries a configuration to a place with another environment.
func TestPorts(t *testing.T) {
	c := New(map[string]string{
		"fs.defaultFS":                 "hdfs://nn:9820/user",
		"dfs.ha.journal":               "qjournal://a:8485;b/x, b:8486",
		"yarn.resourcemanager.address": "${yarn.resourcemanager.hostname}:20032",
		"hadoop.zk.address":            "z1:2181,z2:2182,[::1]:2183",
		"dfs.replication":              "3",
		"some.time":                    "12:34:56",
		"too.large":                    "host:70000",
	})
	want := map[int]bool{9820: true, 8485: true, 8486: true, 20032: true, 2181: true, 2182: true, 2183: true}
	if got := c.Ports(); !maps.Equal(got, want) {
		t.Errorf("ports %v, want %v", got, want)
	}
}

func TestPack(t *testing.T) {
	t.Setenv("HF_HOST", "here")
	b, err := New(map[string]string{"host": "${env.HF_HOST}", "fs.defaultFS": "hdfs://${host}:9000"}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_HOST", "there")
	c, err := Unpack(b)
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultFS() != "hdfs://here:9000" {
		t.Errorf("DefaultFS %q", c.DefaultFS())
	}
	if _, err := Unpack(b[:len(b)/2]); err == nil {
		t.Error("half of it was taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(site("a", "${b}", "b", "${env.X:-${a}}")))
	f.Add([]byte(`<configuration><property name="a" value="b" final="true"/></configuration>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		c := New(nil)
		var r reader // without a budget, nothing is included
		if r.parse(b, "f", 0) != nil {
			return
		}
		c.put("f", r.properties)
		for _, k := range c.Keys() {
			c.Get(k)
		}
		p, err := c.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(p); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	b, err := New(map[string]string{"a": "b"}).Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		_, _ = Unpack(b)
	})
}

// TestResolvedNameNodes: one name in DNS may stand for several NameNodes.
func TestResolvedNameNodes(t *testing.T) {
	properties := map[string]string{
		"dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "all", "dfs.namenode.rpc-address.ns.all": "localhost:8021",
		"dfs.client.failover.resolver.useFQDN": "false",
	}
	for needed, want := range map[string]string{"false": "localhost:8021", "true": "127.0.0.1:8021"} {
		properties["dfs.client.failover.resolve-needed.ns"] = needed
		got, err := New(properties).NameNodes("hdfs://ns/a")
		if err != nil || !slices.Contains(got, want) {
			t.Errorf("needed %s: %v, %v", needed, got, err)
		}
	}
	properties["dfs.client.failover.resolve-needed.ns"] = "true"
	properties["dfs.namenode.rpc-address.ns.all"] = "name.invalid:8021"
	if got, err := New(properties).NameNodes("hdfs://ns/a"); err == nil || !strings.Contains(err.Error(), "resolve-needed") {
		t.Errorf("a name that nobody has: %v, %v", got, err)
	}
}
