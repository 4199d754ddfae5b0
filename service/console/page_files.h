#ifndef PANDO_SERVICE_CONSOLE_PAGE_FILES_H_
#define PANDO_SERVICE_CONSOLE_PAGE_FILES_H_

#include <string>
#include <string_view>

namespace pando {

// A file of the page, embedded in the program.
struct PageFile {
  std::string_view content_type;
  std::string_view content;
};

// Returns the file of this name, or null if there is none.
const PageFile* FindPageFile(const std::string& name);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_PAGE_FILES_H_
