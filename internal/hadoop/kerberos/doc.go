// Package kerberos is the identity of this process in a Kerberos realm: a User, from a
// keytab or from the ticket cache that kinit made, obtains tickets for services. The
// messages and their encryption are gokrb5's. This package adds what is found at sites beyond it:
//
//   - krb5.conf with include and includedir, several sections of one name, and
//     realms whose settings are spread over several files (config.go)
//   - ticket caches by the names in KRB5CCNAME and default_ccache_name (cache.go), in
//     files or in a daemon (kcm.go); those in the kernel (KEYRING) cannot be read, and the
//     error says what to do
//   - hadoop.security.auth_to_local, which maps a principal to a user name (names.go)
//   - exchanges with KDCs, whose answers may be of any length and content (exchange.go), for
//     tickets (tickets.go): gokrb5's own end the process when an answer is damaged
//   - other tickets in the place of those that services, or KDCs, refuse (replace.go)
//   - logins that a KDC has refused, which are not repeated for a while (refusals.go)
//   - errors that name the cause and the remedy (errors.go)
//
// A User may be used by many goroutines; it sends one request to the KDC at a time. Tickets are
// replaced when one is asked for, or was refused: there are no goroutines here.
package kerberos
