// A certificate authority for tests, made by the openssl command in a directory of its own under /tmp, which
// goes with the object.
//
//   TestCa ca;                                  // ca.pem
//   ca.issue("server", "DNS:localhost,IP:127.0.0.1");  // server.pem, server.key
//   ca.file("server.pem")
#pragma once
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace ringshift::test {

class TestCa {
 public:
  TestCa() {
    std::string pattern = "/tmp/rs_ca_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    directory_ = pattern;
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=Test CA' "
        "-keyout ca.key -out ca.pem");
  }
  ~TestCa() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  // NAME.pem and NAME.key; days 0: it has expired already.
  void issue(const std::string& name, const std::string& alternative_names, int days = 2) {
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=" + name + "' -keyout " +
        name + ".key -out " + name + ".csr && printf 'subjectAltName=" + alternative_names + "' > " + name +
        ".ext && openssl x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days " +
        std::to_string(days) + " -extfile " + name + ".ext -out " + name + ".pem");
  }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

 private:
  void run(const std::string& command) const {
    const std::string whole = "cd " + directory_ + " && (" + command + ") > log 2>&1";
    if (std::system(whole.c_str()) != 0) throw std::runtime_error(command + ": see " + directory_ + "/log");
  }
  std::string directory_;
};

}  // namespace ringshift::test
