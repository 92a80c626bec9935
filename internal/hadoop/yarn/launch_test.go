package yarn

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/hadoop/token"
	"holdfast/test/bound"
)

// expand does to a value what ContainerLaunch.expandEnvironment does.
func expand(v string) string {
	return strings.NewReplacer("<LOG_DIR>", "/logs", "<CPS>", ":").Replace(
		strings.ReplaceAll(strings.ReplaceAll(v, "{{", "$"), "}}", ""))
}

// value is what a container sees of an environment value: the NodeManager's
// replacements, then bash.
func value(t *testing.T, quoted string) string {
	t.Helper()
	script := `export X="` + expand(quoted) + "\"\nprintf '%s.' \"$X\""
	out, err := exec.Command("bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("bash cannot read %q: %v: %s", script, err, out)
	}
	return strings.TrimSuffix(string(out), ".")
}

func TestValuesArriveAsTheyAre(t *testing.T) {
	for _, v := range []string{
		"", "plain", "with spaces  and\ttabs\nand lines", `"`, `\`, `\\"`, "$HOME", "${HOME}", "$(id)", "`id`", "{{HOME}}", "{{{{a}}}}",
		"{{{", "}}}", "{}", "<LOG_DIR>", "a<CPS>b", "<CPS", "<<CPS>>", "it's", "!x", "a=b;c", "é€", `{"json": {"a": "$b"}}`, `[{"x":[{}]}]`,
		"{<CPS>}{<LOG_DIR>", `\{{`, "*", "~", "#",
	} {
		if got := value(t, quote(v)); got != v {
			t.Errorf("%q arrives as %q (quoted %q)", v, got, quote(v))
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("{{HOME}} $x `y` \\ \" <LOG_DIR>")
	f.Fuzz(func(t *testing.T, v string) {
		defer bound.Memory(t, len(v), 64)()
		if strings.ContainsRune(v, 0) {
			return // no environment can hold it
		}
		if got := value(t, quote(v)); got != v {
			t.Errorf("%q arrives as %q", v, got)
		}
	})
}

func TestResourcesAreHandedOver(t *testing.T) {
	list := []LocalResource{
		{Name: "yarn-submit", URI: "hdfs://nn:8020/user/a b/yarn-submit", Size: 5, Timestamp: 1700000000123, Visibility: Private},
		{Name: "venv", URI: "hdfs://ns/x.tar.gz", Size: 6, Timestamp: 2, Archive: true},
	}
	got, err := DecodeResources(EncodeResources(list))
	if err != nil || len(got) != 2 || got[0] != list[0] || got[1] != list[1] {
		t.Fatalf("%+v, %v", got, err)
	}
	p := got[0].proto()
	u := p.GetResource()
	if u.GetScheme() != "hdfs" || u.GetHost() != "nn" || u.GetPort() != 8020 || u.GetFile() != "/user/a b/yarn-submit" ||
		p.GetSize() != 5 || p.GetTimestamp() != 1700000000123 || p.GetVisibility().String() != "PRIVATE" || p.GetType().String() != "FILE" {
		t.Errorf("on the wire: %v", p)
	}
	p = got[1].proto()
	if u := p.GetResource(); u.GetHost() != "ns" || u.GetPort() != -1 || p.GetType().String() != "ARCHIVE" || p.GetVisibility().String() != "APPLICATION" {
		t.Errorf("on the wire: %v", p)
	}
	for _, bad := range []LocalResource{{Name: "x", URI: "/local"}, {Name: "", URI: "hdfs://a/b"}, {Name: "../x", URI: "hdfs://a/b"}, {Name: "/x", URI: "hdfs://a/b"}, {Name: "x", URI: "hdfs://a b"}} {
		if err := bad.Check(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	for _, bad := range []string{"", "{", `[{"Name":"x"}]`, `"x"`} {
		if _, err := DecodeResources(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzDecodeResources(f *testing.F) {
	f.Add(EncodeResources([]LocalResource{{Name: "a", URI: "hdfs://h:1/b", Size: 1}}))
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 1000)()
		list, err := DecodeResources(s)
		if err != nil {
			return
		}
		for _, r := range list {
			_ = r.proto()
		}
	})
}

func TestLaunchCarriesCredentials(t *testing.T) {
	c := token.New()
	c.Secrets["a"] = []byte("b")
	p := Launch{Command: "true", Credentials: c, Environment: map[string]string{"B": "$1", "A": "2"}, ViewACL: "alice"}.proto()
	got, err := token.Parse(p.GetTokens())
	if err != nil || string(got.Secrets["a"]) != "b" {
		t.Errorf("credentials: %v, %v", got, err)
	}
	if e := p.GetEnvironment(); len(e) != 2 || e[0].GetKey() != "A" || e[1].GetValue() != `\$1` {
		t.Errorf("environment: %v", e)
	}
	if len(p.GetCommand()) != 1 || p.GetApplication_ACLs()[0].GetAcl() != "alice" {
		t.Errorf("launch context: %v", p)
	}
}
