package kerberos

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Name returns a principal's name on the cluster, as hadoop.security.auth_to_local
// says (org.apache.hadoop.security.authentication.util.KerberosName): rules, of
// which the first that fits counts. Empty rules mean DEFAULT, which takes those
// of krb5.conf's default realm; without one, every realm is that.
func Name(principal, rules string) (string, error) {
	s, err := readSettings()
	if err != nil {
		return "", err
	}
	realm := s.defaults["default_realm"]
	if realm == "" {
		_, realm, _ = cutPrincipal(principal)
	}
	return shortName(principal, realm, rules)
}

// rule is DEFAULT, or RULE:[n:format](match)s/from/to/g, each maybe with /L.
var rule = regexp.MustCompile(`^\s*(?:(DEFAULT)|RULE:\[(\d*):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?)(/?L)?`)

func shortName(principal, defaultRealm, rules string) (string, error) {
	name, realm, ok := cutPrincipal(principal)
	if !ok {
		return name, nil
	}
	parts := strings.Split(name, "/")
	if strings.TrimSpace(rules) == "" {
		rules = "DEFAULT"
	}
	for rest := rules; strings.TrimSpace(rest) != ""; {
		m := rule.FindStringSubmatch(rest)
		if m == nil {
			return "", fmt.Errorf("hadoop.security.auth_to_local: %q is not a rule: write DEFAULT or RULE:[n:format](match)s/from/to/g", strings.TrimSpace(rest))
		}
		rest = rest[len(m[0]):]
		short, ok, err := applyRule(m, parts, realm, defaultRealm)
		if err != nil {
			return "", err
		}
		if ok {
			if m[8] != "" {
				short = strings.ToLower(short)
			}
			return short, nil
		}
	}
	return "", denied("no rule of hadoop.security.auth_to_local makes a user's name of the principal %s: use another principal, or have a rule added", principal)
}

// applyRule applies a rule, given as the submatches of rule.
func applyRule(m []string, parts []string, realm, defaultRealm string) (short string, ok bool, err error) {
	if m[1] != "" {
		return parts[0], realm == defaultRealm, nil
	}
	if n, err := strconv.Atoi(m[2]); err != nil || n != len(parts) {
		return "", false, nil
	}
	base := parameter.ReplaceAllStringFunc(m[3], func(p string) string {
		switch i, _ := strconv.Atoi(p[1:]); {
		case i == 0:
			return realm
		case i <= len(parts):
			return parts[i-1]
		}
		return ""
	})
	if m[4] != "" {
		match, err := regexp.Compile("^(?:" + m[4] + ")$")
		if err != nil {
			return "", false, fmt.Errorf("hadoop.security.auth_to_local: the pattern (%s): %w", m[4], err)
		}
		if !match.MatchString(base) {
			return "", false, nil
		}
	}
	if m[5] == "" {
		return base, true, nil
	}
	from, err := regexp.Compile(m[5])
	if err != nil {
		return "", false, fmt.Errorf("hadoop.security.auth_to_local: the pattern %s: %w", m[5], err)
	}
	to := parameter.ReplaceAllString(m[6], "$${$1}") // Java's $1 ends with its digits
	if m[7] != "" {
		return from.ReplaceAllString(base, to), true, nil
	}
	if at := from.FindStringSubmatchIndex(base); at != nil {
		base = base[:at[0]] + string(from.ExpandString(nil, to, base, at)) + base[at[1]:]
	}
	return base, true, nil
}

var parameter = regexp.MustCompile(`\$(\d)`)
