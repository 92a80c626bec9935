package kerberos

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// EnvConfig names the configuration file, or several separated by colons.
const EnvConfig = "KRB5_CONFIG"

const defaultConfig = "/etc/krb5.conf"

// settings is a krb5.conf, read as MIT's library does: the first value of a name is used (profile
// library), and the parts of a realm are merged.
type settings struct {
	defaults map[string]string   // [libdefaults]
	realms   map[string][]string // [realms]: lines
	domains  map[string]string   // [domain_realm]
	files    []string
	depth    int
}

// configFiles returns the files to read.
func configFiles() []string {
	if list := os.Getenv(EnvConfig); list != "" {
		return filepath.SplitList(list)
	}
	return []string{defaultConfig}
}

// readSettings reads the configuration with all that it includes.
func readSettings() (*settings, error) {
	s := &settings{defaults: map[string]string{}, realms: map[string][]string{}, domains: map[string]string{}}
	files := configFiles()
	for _, f := range files {
		if err := s.read(f); err != nil && !(errors.Is(err, fs.ErrNotExist) && len(files) > 1) {
			return nil, denied("read Kerberos's configuration: %v; have krb5.conf installed, or name another file in %s", err, EnvConfig)
		}
	}
	return s, nil
}

// maxIncludes bounds how deep files may include each other.
const maxIncludes = 10

func (s *settings) read(file string) error {
	if s.depth++; s.depth > maxIncludes {
		return fmt.Errorf("%s is included by itself", file)
	}
	defer func() { s.depth-- }()
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s.files = append(s.files, file)
	section, realm, nested := "", "", 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[':
			section = strings.ToLower(strings.Trim(line, "[]* \t"))
			realm, nested = "", 0
			continue
		}
		if word, path, ok := strings.Cut(line, " "); ok && nested == 0 {
			switch path = strings.TrimSpace(path); word {
			case "include":
				if err := s.read(path); err != nil {
					return err
				}
				continue
			case "includedir":
				if err := s.readDir(path); err != nil {
					return err
				}
				continue
			case "module":
				continue
			}
		}
		name, value, _ := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch section {
		case "libdefaults":
			first(s.defaults, strings.ToLower(name), value)
		case "domain_realm":
			first(s.domains, strings.ToLower(name), value)
		case "realms":
			switch {
			case strings.HasSuffix(line, "{"):
				if nested++; nested == 1 {
					realm = name
				}
			case strings.HasPrefix(line, "}"):
				nested--
			case nested == 1:
				s.realms[realm] = append(s.realms[realm], name+" = "+value)
			}
		}
	}
	return nil
}

func first(m map[string]string, name, value string) {
	if _, ok := m[name]; !ok {
		m[name] = value
	}
}

// included matches the names of files that includedir reads: letters, digits,
// dashes and underscores only, or ending in .conf (krb5.conf(5)).
var included = regexp.MustCompile(`^([A-Za-z0-9_-]+|[^.].*\.conf)$`)

func (s *settings) readDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !included.MatchString(e.Name()) {
			continue
		}
		if err := s.read(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// strong are the encryption types of a default configuration. GSSAPI wrapping
// here supports AES only; a keytab may still have RC4 for the login itself.
var strong = []string{"aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96", "aes256-cts-hmac-sha384-192", "aes128-cts-hmac-sha256-128"}

// families are the short names of krb5.conf(5) for several types.
var families = map[string][]string{"default": append(slices.Clone(strong), "arcfour-hmac"), "aes": strong, "rc4": {"arcfour-hmac"}}

// encryption reads a list of encryption types, with families, +type and -type.
// Unknown ones are ignored.
func encryption(list string) []int32 {
	var ids []int32
	for _, word := range strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		name := strings.TrimLeft(word, "+-")
		names := families[name]
		if names == nil {
			names = []string{name}
		}
		for _, n := range names {
			id := etypeID.EtypeSupported(n)
			if !slices.Contains(usable, id) {
				continue
			}
			ids = slices.DeleteFunc(ids, func(i int32) bool { return i == id })
			if word[0] != '-' {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// usable are the types that can be used for anything.
var usable = []int32{
	etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96,
	etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.RC4_HMAC,
}

// passedDefaults are the relations of [libdefaults] that gokrb5 reads; it fails on some of the
// others.
var passedDefaults = []string{"default_realm", "dns_lookup_kdc", "clockskew", "ticket_lifetime", "renew_lifetime", "forwardable", "proxiable", "noaddresses", "udp_preference_limit"}

// gokrb5 makes gokrb5's configuration. Only [libdefaults] goes through its parser, for durations
// and switches: names of realms and hosts may be any text, and the parser interprets braces,
// brackets and comments anywhere in a line.
func (s *settings) gokrb5() (*config.Config, error) {
	first(s.defaults, "dns_lookup_kdc", "true") // MIT's default, not gokrb5's
	var b strings.Builder
	b.WriteString("[libdefaults]\n")
	for _, name := range passedDefaults {
		if v := s.defaults[name]; v != "" {
			fmt.Fprintf(&b, "%s = %s\n", name, v)
		}
	}
	c, err := config.NewFromString(b.String())
	if err != nil {
		return nil, fmt.Errorf("read Kerberos's configuration %s: %w", strings.Join(s.files, ", "), err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.realms)) {
		c.Realms = append(c.Realms, realm(name, s.realms[name]))
	}
	for domain, realm := range s.domains {
		c.DomainRealm[domain] = withoutComment(realm)
	}
	choose := func(names ...string) []int32 { // a list that nothing else has, since it is narrowed
		for _, n := range names {
			if ids := encryption(s.defaults[n]); len(ids) > 0 {
				return ids
			}
		}
		return encryption("default")
	}
	c.LibDefaults.DefaultTktEnctypeIDs = choose("default_tkt_enctypes", "permitted_enctypes")
	c.LibDefaults.DefaultTGSEnctypeIDs = slices.DeleteFunc(choose("default_tgs_enctypes", "permitted_enctypes"), func(id int32) bool { return id == etypeID.RC4_HMAC })
	c.LibDefaults.PermittedEnctypeIDs = choose("permitted_enctypes")
	if len(c.LibDefaults.DefaultTGSEnctypeIDs) == 0 {
		c.LibDefaults.DefaultTGSEnctypeIDs = encryption("aes")
	}
	return c, nil
}

// realm makes one of [realms] of its lines "name = value": its KDCs are all that
// a login asks for.
func realm(name string, lines []string) config.Realm {
	r := config.Realm{Realm: name}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, " = ")
		value = withoutComment(value)
		// A KDC behind an HTTPS proxy cannot be reached here.
		if strings.ToLower(key) != "kdc" || strings.Contains(value, "://") {
			continue
		}
		// Values after one that ends with a star are ignored.
		value, last := strings.CutSuffix(value, "*")
		if value = strings.TrimSpace(value); value != "" {
			if !strings.Contains(value, ":") {
				value += ":88"
			}
			r.KDC = append(r.KDC, value)
		}
		if last {
			break
		}
	}
	return r
}

// withoutComment drops a comment after a value, which gokrb5 allows too.
func withoutComment(value string) string {
	if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = value[:i]
	}
	return strings.TrimSpace(value)
}
