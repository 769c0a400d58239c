"""Pages that show a sentence as code or hide it in a comment, and such as only seem to; `{}` stands for the sentence."""

UNREAD = [
    "Text\n\n    {}\n", "# Head\n    {}\n", "Text\n\n\t{}\n\n\tmore\n", "- item\n\n      {}\n", "1. item\n   - more\n\n         {}\n",
    "- item\n\n  ```\n\n  {}\n  ```\n", "```\r\n{}\r\n```\r\n", "<!-- {} -->\n", "<!-- `a\n\n{}\n-->\n", "Text `<!--` <!-- {} -->\n",
]  # fmt: skip
READ = [
    "Text\n    {}\n", "- item\n\n    {}\n", "- item\n  - more\n\n    {}\n", "Text\n\n   {}\n", "`<!--` {} -->\n", "    <!--\n\n{} -->\n",
    "```\r\ncode\r\n```\r\n{}\n", "- item\n```\n\ncode\n```\n\n{}\n",
]  # fmt: skip
