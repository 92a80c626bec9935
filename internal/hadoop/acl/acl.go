// Package acl reads Hadoop's access control lists
// (org.apache.hadoop.security.authorize.AccessControlList) and finds out which
// groups a user is in.
//
// A list is "USERS GROUPS", each separated by commas, with one space between
// the two: "alice,bob staff"; " staff" names groups only, "*" is everybody and
// "" or " " nobody.
package acl

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/internal/hadoop/conf"
)

// List is an access control list. The zero value allows nobody.
type List struct {
	All           bool
	Users, Groups []string
}

// Parse parses a list. It is stricter than Hadoop, which gives a list with an empty name or a
// third part a meaning that its author will not have intended.
func Parse(text string) (List, error) {
	if strings.TrimSpace(text) == "*" {
		return List{All: true}, nil
	}
	users, groups, _ := strings.Cut(text, " ")
	users, groups = strings.TrimSpace(users), strings.TrimSpace(groups)
	if strings.ContainsAny(groups, " \t") {
		return List{}, fmt.Errorf("%q is not a list of users and groups: there is a space in it besides the one between users and groups; write \"USER,USER GROUP,GROUP\"", text)
	}
	var l List
	for _, part := range []struct {
		text string
		into *[]string
	}{{users, &l.Users}, {groups, &l.Groups}} {
		if part.text == "" {
			continue
		}
		*part.into = strings.Split(part.text, ",")
		if slices.Contains(*part.into, "") {
			return List{}, fmt.Errorf("%q is not a list of users and groups: a name beside a comma is missing; write \"USER,USER GROUP,GROUP\", without spaces after commas", text)
		}
	}
	return l, nil
}

// Configured returns the list that a property holds. Of a list, the space at its beginning says that
// it names no users.
func Configured(c *conf.Conf, key string) (List, error) {
	l, err := Parse(c.Text(key))
	if err != nil {
		return List{}, fmt.Errorf("the Hadoop property %s: %w", key, err)
	}
	return l, nil
}

// Allows reports whether the list names the user, or one of the groups. groups is called only if
// the result depends on it.
func (l List) Allows(user string, groups func(user string) []string) bool {
	if l.All || slices.Contains(l.Users, user) {
		return true
	}
	if len(l.Groups) == 0 {
		return false
	}
	return slices.ContainsFunc(groups(user), func(g string) bool { return slices.Contains(l.Groups, g) })
}

// Groups finds the groups of users and remembers them for a while. Its methods
// may be called from many goroutines.
type Groups struct {
	static map[string][]string
	lasts  time.Duration // what was found out

	mu    sync.Mutex
	known map[string]answer
}

type answer struct {
	groups []string
	until  time.Time
}

// Defaults of Hadoop: of hadoop.security.groups.cache.secs, and of
// hadoop.security.groups.negative-cache.secs for users of whom nothing is known.
const (
	remembered        = 5 * time.Minute
	unknownRemembered = 30 * time.Second
)

// NewGroups returns Groups by hadoop.user.group.static.mapping.overrides
// ("alice=staff,admins;bob="), and for other users by this machine, as Hadoop's
// ShellBasedUnixGroupsMapping does. On a cluster whose groups are elsewhere
// (LdapGroupsMapping), lists must name users.
func NewGroups(c *conf.Conf) *Groups {
	g := &Groups{static: map[string][]string{}, known: map[string]answer{}, lasts: remembered}
	if d, err := c.Duration("hadoop.security.groups.cache.secs", time.Second, remembered); err == nil && d > 0 {
		g.lasts = d
	}
	for _, entry := range strings.Split(c.Get("hadoop.user.group.static.mapping.overrides"), ";") {
		user, groups, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if ok {
			g.static[user] = strings.FieldsFunc(groups, func(r rune) bool { return r == ',' })
		}
	}
	return g
}

// Of returns the groups of a user; none for an unknown user, and for one who cannot be looked up: what
// was known before is no reason to let somebody in.
func (g *Groups) Of(user string) []string {
	if groups, ok := g.static[user]; ok {
		return groups
	}
	g.mu.Lock()
	a, ok := g.known[user]
	g.mu.Unlock()
	if ok && time.Now().Before(a.until) {
		return a.groups
	}
	// id uses the sources of nsswitch.conf (LDAP, SSSD), which os/user does not without
	// libc.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "id", "-Gn", "--", user).Output()
	names := strings.Fields(string(out))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() && len(names) > 0 {
		// Of a group without a name it prints the number, and fails in the end
		// (ShellBasedUnixGroupsMapping.resolvePartialGroupNames).
		names, err = slices.DeleteFunc(names, isNumber), nil
	}
	if err == nil {
		a = answer{names, time.Now().Add(g.lasts)}
	} else {
		a = answer{nil, time.Now().Add(min(g.lasts, unknownRemembered))}
	}
	g.mu.Lock()
	g.known[user] = a
	g.mu.Unlock()
	return a.groups
}

func isNumber(name string) bool { return strings.Trim(name, "0123456789") == "" }
