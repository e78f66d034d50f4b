// Package access decides who may do what: principals, rights, compiled permission sets. It is pure: no I/O, no clock,
// no store. The same decision serves REST, and every door that follows.
//
// Start reading at Principal and Permissions.Decide; Explain is the same decision with its steps. What does not live here: finding out who somebody is (pkg/auth)
// and applying a Grant to records (pkg/records).
package access
