"""Settings of the documentation site: python -m sphinx -W -b html docs docs/_build/html."""

import sys
from pathlib import Path

from sphinx.transforms.post_transforms.code import TrimDoctestFlagsTransform

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import links  # noqa: E402  (docs/ is no package)
import make_api  # noqa: E402
import make_command_line  # noqa: E402
import make_members  # noqa: E402

import skselect  # noqa: E402

project = "skselect"
author = "The skselect developers"
copyright = author  # noqa: A001 (the name that Sphinx reads)
version = release = skselect.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.intersphinx",
    "cards",
    "live",
    "links",  # before names in code are looked up
    "sphinx_codeautolink",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]
default_role = "code"
smartquotes = False  # quotes in docstrings are Python's
nitpicky = True
intersphinx_mapping = links.write_inventories(HERE / "_build" / "inventories")
codeautolink_concat_default = True  # blocks of a page go on where the one before ended
suppress_warnings = ["codeautolink.match_name"]  # the gallery has linked its names by itself
live_pages = ("start",)
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # lines with a prompt are copied, without it
copybutton_prompt_is_regexp = True

# Named one by one: pages that are new since the last build have their stubs written, too.
autosummary_generate = [f"api/{room.replace('.', '_')}.rst" for room in make_api.ROOMS]
autosummary_context = {
    "results": {name: make_api.results(name) for name in make_api.RESULTS},
    "described": {
        name: text for room in make_api.ROOMS for name, text in make_api.members(room).items()
    },
}
autodoc_typehints = "none"  # docstrings say what the types mean
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

#: The tasks of the gallery, in the order in which users meet them.
GALLERY = ("choose", "certify", "compare", "costs_and_people", "run")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [f"../examples/{task}" for task in GALLERY],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "ignore_repr_types": r"Classifier|Tuner",
    "remove_config_comments": True,
    "doc_module": ("skselect",),
    "backreferences_dir": "api/backreferences",
    "inspect_global_variables": False,
    "reset_modules": ("matplotlib", "make_images.use_style"),
    "thumbnail_size": (720, 480),
}

html_theme = "pydata_sphinx_theme"
html_title = f"skselect {release}"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"start": [], "cheatsheet": [], "faq": []}  # sections of one page
html_theme_options = {
    "logo": {
        "text": "skselect",
        "image_light": "_static/logo_light.svg",
        "image_dark": "_static/logo_dark.svg",
    },
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_nav_level": 0,  # groups of pages fold
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    # Pages that are one wide table have the room for it.
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "metrics": []},
    "footer_start": ["copyright"],
    "footer_end": ["version"],
}


def drop_last_blank_line(_app, _name, source):
    """Close code blocks after their last line; doctest wants a blank one before the fence."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def drop_doctest_flags(_app, doctree):
    """Drop doctest's flags from code before it is linked; Sphinx does so afterwards."""
    TrimDoctestFlagsTransform(doctree).apply()


def write_pages(_app, _config):
    """Write what is made from the code before Sphinx looks for sources."""
    make_api.write_pages(HERE / "api")
    make_command_line.write_page(HERE / "api" / "command_line.rst")


def setup(app):
    """Tell Sphinx."""
    app.connect("config-inited", write_pages, priority=100)
    app.connect("source-read", drop_last_blank_line)
    # before numpydoc reads the docstrings
    app.connect("autodoc-process-docstring", make_members.drop_attributes, priority=100)
    app.connect("doctree-read", drop_doctest_flags, priority=100)
