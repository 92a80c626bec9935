package conf

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// EnvDir names the variable that says where the configuration is.
const EnvDir = "HADOOP_CONF_DIR"

// Conf is a configuration. It is not changed after it is shared.
type Conf struct {
	values   map[string]value
	warnings []string
	getenv   func(string) (string, bool)
}

type value struct {
	text  string
	final bool
	from  string // file, for messages
}

// New returns a configuration of these properties, over the defaults.
func New(properties map[string]string) *Conf {
	c := &Conf{values: make(map[string]value, len(properties)), getenv: os.LookupEnv}
	for k, v := range properties {
		c.values[current(k)] = value{text: v, from: "program"}
	}
	return c
}

// Set overrides a property, also a final one.
func (c *Conf) Set(key, text string) { c.values[current(key)] = value{text: text, from: "program"} }

// Warnings returns what the user should know about the files and what is no error.
func (c *Conf) Warnings() []string { return c.warnings }

// Lookup returns a property, substituted, and whether it is set or has a default.
func (c *Conf) Lookup(key string) (string, bool) {
	v, ok := c.text(key)
	return strings.TrimSpace(v), ok
}

// Text is Get with the white space around the value, which means something in access control
// lists.
func (c *Conf) Text(key string) string {
	v, _ := c.text(key)
	return v
}

func (c *Conf) text(key string) (string, bool) {
	v, ok := c.raw(key)
	if !ok {
		return "", false
	}
	return c.substitute(v), true
}

func (c *Conf) raw(key string) (string, bool) {
	key = current(key)
	if v, ok := c.values[key]; ok {
		return v.text, true
	}
	v, ok := defaults[key]
	return v, ok
}

// Get returns a property, or "" where it has neither value nor default.
func (c *Conf) Get(key string) string {
	v, _ := c.Lookup(key)
	return v
}

// Keys returns the names of all properties that are set, sorted.
func (c *Conf) Keys() []string {
	keys := make([]string, 0, len(c.values))
	for k := range c.values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// List splits a property at commas.
func (c *Conf) List(key string) []string {
	var list []string
	for _, s := range strings.Split(c.Get(key), ",") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// Bool returns a property, or def where it is not set or neither true nor false.
func (c *Conf) Bool(key string, def bool) bool {
	switch strings.ToLower(c.Get(key)) {
	case "true":
		return true
	case "false":
		return false
	}
	return def
}

// Int returns a property, or def where it is not set. Like Java it takes
// 0x numbers; unlike Java it takes 128m and the like too.
func (c *Conf) Int(key string, def int64) (int64, error) {
	s := c.Get(key)
	if s == "" {
		return def, nil
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		if n, err := strconv.ParseInt(hex, 16, 64); err == nil {
			return n, nil
		}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseInt(s[:len(s)-1], 10, 64); err == nil {
		if i := strings.IndexByte("kmgtpe", s[len(s)-1]|0x20); i >= 0 {
			shift := 10 * (i + 1)
			if r := n << shift; r>>shift == n {
				return r, nil
			}
		}
	}
	return 0, fmt.Errorf("the Hadoop property %s is %q%s: not a number", key, s, c.origin(key))
}

// units are the suffixes of Configuration.getTimeDuration.
var units = []struct {
	suffix string
	unit   time.Duration
}{
	{"ns", time.Nanosecond}, {"us", time.Microsecond}, {"ms", time.Millisecond},
	{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// Duration returns a property, or def where it is not set. A number without a
// suffix counts in unit, which differs from property to property.
func (c *Conf) Duration(key string, unit, def time.Duration) (time.Duration, error) {
	s := strings.ToLower(c.Get(key))
	if s == "" {
		return def, nil
	}
	number := s
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = rest, u.unit
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || (n != 0 && (time.Duration(n)*unit)/unit != time.Duration(n)) {
		return 0, fmt.Errorf("the Hadoop property %s is %q%s: not a duration", key, s, c.origin(key))
	}
	return time.Duration(n) * unit, nil
}

// Secure reports whether the cluster uses Kerberos.
func (c *Conf) Secure() bool {
	return strings.EqualFold(c.Get("hadoop.security.authentication"), "kerberos")
}

// protections of hadoop.rpc.protection as SASL names them (SaslRpcServer.QualityOfProtection).
var protections = map[string]string{"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}

// RPCProtection is hadoop.rpc.protection in SASL's words, the best liked first.
func (c *Conf) RPCProtection() ([]string, error) { return c.protection("hadoop.rpc.protection") }

// TransferProtection is dfs.data.transfer.protection likewise; none where it is
// not set.
func (c *Conf) TransferProtection() ([]string, error) {
	return c.protection("dfs.data.transfer.protection")
}

func (c *Conf) protection(key string) ([]string, error) {
	var list []string
	for _, name := range c.List(key) {
		qop, ok := protections[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Errorf("the Hadoop property %s is %q%s: it takes authentication, integrity and privacy", key, c.Get(key), c.origin(key))
		}
		list = append(list, qop)
	}
	return list, nil
}

func (c *Conf) origin(key string) string {
	if v, ok := c.values[key]; ok {
		return " (in " + v.from + ")"
	}
	return ""
}
