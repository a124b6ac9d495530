// The endpoints of a Kubernetes service: its EndpointSlices (discovery.k8s.io/v1), listed and then watched.
//
// - A service has many slices, and an endpoint may be in two while it is moved: all are merged, one instance
// an id, the
//   one in the better state.
// - ready -> ready; else serving and terminating -> draining; else unhealthy. Absent conditions are what the
// API says:
//   ready true, serving as ready, terminating false.
// - The watch asks for bookmarks and ends by itself after `wait`; then it goes on from the last version. 410
// Gone, or an
//   ERROR event, or any failure: listed again. An event with an older version of a slice than is known is
//   dropped.
// - The token is read anew for each question: the kubelet replaces it.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::discovery {

inline constexpr std::size_t kSlicesMax = 4096;

// An endpoint as it stands in a slice.
struct KubernetesSlice {
  std::string name;
  std::uint64_t version = 0;  // resourceVersion; 0 when it is no number, and then never compared.
  bool of_service = false;    // Bears the label of the service that was asked for.
  std::vector<Instance> instances;
  std::vector<std::string> left_out;
};

// One page of a list.
struct KubernetesPage {
  std::vector<KubernetesSlice> slices;
  std::string version, more;  // resourceVersion of the list; the token of the next page, "" for none.
};
[[nodiscard]] Result<KubernetesPage> parse_slice_list(std::string_view json, const Options& options);

struct KubernetesEvent {
  enum class Kind { put, remove, bookmark, gone, failed };
  Kind kind = Kind::put;
  KubernetesSlice slice;  // put, remove.
  std::string version;    // Of the object: where to go on.
  std::string message;    // failed.
};
[[nodiscard]] Result<KubernetesEvent> parse_slice_event(std::string_view line, const Options& options);

// The slices that are known, merged.
class SliceSet {
 public:
  void reset(std::vector<KubernetesSlice> slices);
  // False when it says nothing new.
  bool apply(KubernetesEvent event);
  [[nodiscard]] Seen seen() const;

 private:
  std::map<std::string, KubernetesSlice, std::less<>> slices_;
};

// invalid: outside of a pod, without url.
[[nodiscard]] Result<std::unique_ptr<Source>> make_kubernetes_source(Options options);

}  // namespace ringshift::discovery
