// The words in which the store refuses. They are etcd's own, to the letter: its clients compare them.
#pragma once

namespace ringshift::store::errors {

inline constexpr char kEmptyKey[] = "etcdserver: key is not provided";
inline constexpr char kKeyNotFound[] = "etcdserver: key not found";
inline constexpr char kValueProvided[] = "etcdserver: value is provided";
inline constexpr char kLeaseProvided[] = "etcdserver: lease is provided";
inline constexpr char kTooManyOps[] = "etcdserver: too many operations in txn request";
inline constexpr char kDuplicateKey[] = "etcdserver: duplicate key given in txn request";
inline constexpr char kCompacted[] = "etcdserver: mvcc: required revision has been compacted";
inline constexpr char kFutureRevision[] = "etcdserver: mvcc: required revision is a future revision";
inline constexpr char kLeaseNotFound[] = "etcdserver: requested lease not found";
inline constexpr char kLeaseExists[] = "etcdserver: lease already exists";
inline constexpr char kLeaseTtlTooLarge[] = "etcdserver: too large lease TTL";
inline constexpr char kTooLarge[] = "etcdserver: request is too large";

}  // namespace ringshift::store::errors
