// Package kerberos is who this process is to a Kerberos realm: a User, from a
// keytab or from the ticket cache that kinit made, who gets tickets for
// services. The protocol is gokrb5's; what is here is what sites' files and
// habits demand beyond it:
//
//   - krb5.conf with include and includedir, several sections of one name, and
//     realms of which parts stand in several files (config.go)
//   - ticket caches by the names that KRB5CCNAME and default_ccache_name give
//     them (cache.go), in files or kept by a daemon (kcm.go); those that the
//     kernel keeps (KEYRING) cannot be read, and the error says what to do
//   - hadoop.security.auth_to_local, which makes a user's name of a principal
//     (names.go)
//   - answers of KDCs that are bounded in length (relay.go)
//   - errors that name the cause and what to do about it (errors.go)
//
// A User may be used by many goroutines; it asks the KDC for one of them at a
// time. It has no goroutines of its own but the one that gokrb5 starts to renew
// a keytab's ticket, which Close ends; the package has one for each KDC that was to be
// asked, which ends with the process.
package kerberos
